"""Slack's numbers, each under the page that documents it (characters unless the name says otherwise)."""

# docs.slack.dev/reference/block-kit/blocks
MESSAGE_BLOCKS = 50
VIEW_BLOCKS = 100
BLOCK_ID = 255

# docs.slack.dev/reference/methods/chat.postMessage, chat.update
POST_TEXT_KEPT = 40_000
UPDATE_TEXT = 4_000
ATTACHMENTS = 100
MARKDOWN_TEXT = 12_000

# docs.slack.dev/reference/block-kit/composition-objects
TEXT = 3_000
OPTION_TEXT = 75
OPTION_VALUE = 150
OPTION_DESCRIPTION = 75
CONFIRM_TITLE = 100
CONFIRM_TEXT = 300
CONFIRM_BUTTON = 30

# docs.slack.dev/reference/block-kit/block-elements
ACTION_ID = 255
BUTTON_TEXT = 75
BUTTON_VALUE = 2_000
BUTTON_URL = 3_000
ACCESSIBILITY_LABEL = 75
AGENT_PROMPT = 4_000
PLACEHOLDER = 150
OPTIONS = 100
OPTION_GROUPS = 100
OVERFLOW_OPTIONS = 5
IMAGE_URL = 3_000
ALT_TEXT = 2_000
INPUT_TEXT = 3_000

# docs.slack.dev/reference/block-kit/blocks/{section,header,actions,context,context-actions,input}-block
SECTION_TEXT = 3_000
SECTION_FIELDS = 10
SECTION_FIELD = 2_000
HEADER_TEXT = 150
ACTIONS_ELEMENTS = 25
CONTEXT_ELEMENTS = 10
CONTEXT_ACTIONS_ELEMENTS = 5
INPUT_LABEL = 2_000
INPUT_HINT = 2_000
IMAGE_TITLE = 2_000

# docs.slack.dev/reference/block-kit/blocks/{alert,card,carousel,container,table,video,markdown}-block
ALERT_TEXT = 200
CARD_TITLE = 150
CARD_BODY = 200
CARD_BUTTONS = 3
CAROUSEL_CARDS = 10
CONTAINER_CHILDREN = 10
CONTAINER_TITLE = 150
TABLE_ROWS = 100
TABLE_COLUMNS = 20
DATA_TABLE_LEAST_ROWS = 2
DATA_TABLE_PAGE = 100
MARKDOWN_BLOCKS_TEXT = 12_000
VIDEO_TITLE = 199
VIDEO_AUTHOR = 49

# docs.slack.dev/reference/views, docs.slack.dev/surfaces/modals
VIEW_TITLE = 24
VIEW_BUTTON = 24
CALLBACK_ID = 255
EXTERNAL_ID = 255
PRIVATE_METADATA = 3_000
VIEW_BYTES = 250_000
VIEW_STACK = 3

# docs.slack.dev/interactivity/handling-user-interaction
TRIGGER_SECONDS = 3.0
RESPONSE_URL_USES = 5
RESPONSE_URL_SECONDS = 30 * 60

# docs.slack.dev/apis/events-api/using-socket-mode
SOCKETS_PER_APP = 10
