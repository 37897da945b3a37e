"""What the agent may do: one tool per file, and this list of them."""

from agent.tools.shop.delete_customers import delete_customers
from agent.tools.shop.draft_refund_report import draft_refund_report
from agent.tools.shop.refund_payments import refund_payments
from agent.tools.shop.search_payments import search_payments
from agent.tools.shop.send_email import send_email

TOOLS = [search_payments, draft_refund_report, refund_payments, send_email, delete_customers]
