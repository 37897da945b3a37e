"""Slack's limits, each with the page that documents it; lengths are UTF-16 units, the strictest reading.

Values of buttons, private metadata and our ids are a `Target` or constants, far shorter than any limit.
"""

# https://docs.slack.dev/reference/block-kit/blocks
BLOCKS_PER_MESSAGE = 50
BLOCKS_PER_VIEW = 100
BLOCK_ID = 255
HEADER = 150
SECTION_TEXT = 3_000
CONTEXT = 500
ACTIONS_ELEMENTS = 25
TABLE_ROWS = 100
TABLE_CELLS = 20

# https://docs.slack.dev/reference/block-kit/block-elements
BUTTON_TEXT = 75
ACCESSIBILITY_LABEL = 75
PLAIN_TEXT_INPUT = 3_000
PICKED_MOMENTS = range(10**9, 10**10)  # a datetimepicker's, in seconds since 1970: of 10 digits

# https://docs.slack.dev/reference/block-kit/composition-objects/confirmation-dialog-object
CONFIRM_TITLE = 100
CONFIRM_TEXT = 300
CONFIRM_BUTTON = 30

# https://docs.slack.dev/reference/block-kit/composition-objects/option-object
OPTIONS = 100
OPTION_TEXT = 75

# https://docs.slack.dev/reference/views
VIEW_TITLE = 24

# https://docs.slack.dev/reference/methods/chat.update: what may be posted must be updatable later
MESSAGE_TEXT = 4_000

# No documented figure: `msg_blocks_too_long` was seen at about 13,200 characters of all blocks together.
BLOCKS_TEXT = 13_000

# Ours: what a reader takes in. Together they keep every message below BLOCKS_TEXT.
TITLE_IN_TEXT = 300
LINE = 200
NAME = 80
WORDS_OF_THE_AGENT = 600
REASON = 600
OUTCOME = 600
TABLE_TEXT = 3_000
CELL = 100
RICH_TEXT = 3_000
STATUS = 2_000
ESSENTIALS = 1_500
WARNINGS = 2_000
LIST_ROW = 500
ANSWER_TEXT = 11_000
SHORT_TEXT = 1_000
FIELD_ERROR = 300
MENTIONS = 20
