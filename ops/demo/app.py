"""Tools for the demo agents of a shop, and a function for its workflow. All they change is in memory."""

import logging

from tracon import WorkflowContext, tool, workflow_function

log = logging.getLogger("demo")

orders = {
    "1041": "a desk lamp, delivered last week",
    "1042": "a rain jacket, on its way, due on Tuesday",
}


@tool(effect="read")
def get_order(order_id: str) -> str:
    """Look up an order of the shop."""
    if order_id not in orders:
        raise LookupError(f"there is no order {order_id}")
    return orders[order_id]


@tool(effect="destructive", safe_to_repeat=True)
def refund_order(order_id: str) -> str:
    """Pay an order back. Paying back what is paid back already changes nothing."""
    item = get_order(order_id).partition(",")[0]
    orders[order_id] = f"{item}, paid back"
    log.info("order refunded", extra={"order_id": order_id})
    return orders[order_id]


@tool(effect="destructive", requires_approval=True)
def cancel_order(order_id: str) -> str:
    """Stop an order that is on its way. Somebody of the shop has to approve of it."""
    item = get_order(order_id).partition(",")[0]
    orders[order_id] = f"{item}, cancelled"
    log.info("order cancelled", extra={"order_id": order_id})
    return orders[order_id]


@tool(effect="external")
def send_email(to: str, subject: str, body: str) -> str:
    """Write to a customer. The demo only logs that it would have."""
    log.info("email sent", extra={"to": to, "subject": subject, "characters": len(body)})
    return f"sent to {to}"


pages: dict[str, str] = {}


@workflow_function(attempts=3, delay="200ms")
def publish(answer: str, context: WorkflowContext) -> str:
    """Put an approved article on a page. The key makes it one page, however often this is repeated."""
    if answer != "yes":
        return "It stays in the drawer."
    pages[context.call_key] = context.outputs["write"]
    log.info("article published", extra={"key": context.call_key})
    return f"Published: {pages[context.call_key]}"
