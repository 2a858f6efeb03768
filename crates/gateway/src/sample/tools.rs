//! The shop as a set of tools: some declare hints, some leave it to their name.

use std::sync::Arc;
use std::time::Duration;

use callward::{
    Annotations, Delivery, ErrorKind, ToolCall, ToolError, ToolOutput, ToolSpec, Tools,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::orders::Orders;

/// How long the slow report takes, unless the caller says otherwise.
pub(crate) const REPORT_MS: u32 = 300;
/// The longest a caller may make it take.
const REPORT_MS_MAX: u32 = 60_000;

#[derive(Deserialize)]
struct OrderId {
    order_id: u64,
}

#[derive(Deserialize)]
struct ListOrders {
    status: Option<String>,
}

#[derive(Deserialize)]
struct SalesReport {
    region: String,
    delay_ms: Option<u32>,
}

#[derive(Deserialize)]
struct SetStatus {
    order_id: u64,
    status: String,
}

#[derive(Deserialize)]
struct AddNote {
    order_id: u64,
    text: String,
}

#[derive(Deserialize)]
struct ExchangeRate {
    from: String,
    to: String,
}

#[derive(Deserialize)]
struct ChargeCard {
    order_id: u64,
    cents: u64,
}

/// Returns the tools of one server over the shop.
///
/// # Errors
///
/// None in practice: names and hints are fixed, and a test lists them.
pub(crate) fn tools(
    server: &str,
    orders: &Arc<Orders>,
) -> Result<Tools, Box<dyn std::error::Error>> {
    let own = || orders.clone();
    let mut tools = Tools::new(server)?;

    let shop = own();
    tools = tools.tool(
        spec("get_order", "Returns one order", &["order_id"], reads()),
        move |OrderId { order_id }| {
            let _run = shop.start("get_order");
            std::future::ready(shop.get(order_id))
        },
    )?;

    let shop = own();
    tools = tools.tool(
        spec(
            "list_orders",
            "Lists orders, all or those of one status",
            &[],
            reads(),
        )
        .schema(schema(&[("status", "string")], &[])),
        move |ListOrders { status }| {
            let _run = shop.start("list_orders");
            std::future::ready(Ok::<_, String>(shop.list(status.as_deref())))
        },
    )?;

    let shop = own();
    tools = tools.tool(
        spec("sales_report", "Builds a report; slow", &[], reads()).schema(schema(
            &[("region", "string"), ("delay_ms", "integer")],
            &["region"],
        )),
        move |SalesReport { region, delay_ms }| {
            let shop = shop.clone();
            async move {
                let _run = shop.start("sales_report");
                let delay = delay_ms.unwrap_or(REPORT_MS).min(REPORT_MS_MAX);
                tokio::time::sleep(Duration::from_millis(delay.into())).await;
                Ok::<_, String>(shop.report(&region))
            }
        },
    )?;

    let shop = own();
    tools = tools.tool(
        spec(
            "set_status",
            "Sets the status of an order",
            &["order_id"],
            sets(),
        )
        .schema(schema(
            &[("order_id", "integer"), ("status", "string")],
            &["order_id", "status"],
        )),
        move |SetStatus { order_id, status }| {
            let _run = shop.start("set_status");
            std::future::ready(shop.set_status(order_id, &status))
        },
    )?;

    // no hints at all: what this does is concluded from the name
    let shop = own();
    tools = tools.tool(
        ToolSpec::new("add_note")
            .description("Adds a note to an order")
            .schema(schema(
                &[("order_id", "integer"), ("text", "string")],
                &["order_id", "text"],
            )),
        move |AddNote { order_id, text }| {
            let _run = shop.start("add_note");
            std::future::ready(shop.add_note(order_id, &text))
        },
    )?;

    let shop = own();
    tools = tools.tool(
        spec(
            "delete_order",
            "Deletes an order for good",
            &["order_id"],
            destroys(),
        ),
        move |OrderId { order_id }| {
            let _run = shop.start("delete_order");
            std::future::ready(shop.delete(order_id))
        },
    )?;

    let shop = own();
    tools = tools.service(
        spec(
            "get_exchange_rate",
            "Returns a rate; fails the first time it is asked for a pair",
            &[],
            reads(),
        )
        .schema(schema(
            &[("from", "string"), ("to", "string")],
            &["from", "to"],
        )),
        tower::service_fn(move |call: ToolCall| {
            let _run = shop.start("get_exchange_rate");
            let answer = arguments(&call).and_then(|ExchangeRate { from, to }| {
                shop.exchange_rate(&from, &to)
                    .and_then(|rate| output(&rate))
            });
            std::future::ready(answer)
        }),
    )?;

    let shop = own();
    tools = tools.service(
        spec(
            "charge_card",
            "Charges the card of an order; the first charge happens, then the answer fails",
            &[],
            adds(),
        )
        .schema(schema(
            &[("order_id", "integer"), ("cents", "integer")],
            &["order_id", "cents"],
        )),
        tower::service_fn(move |call: ToolCall| {
            let _run = shop.start("charge_card");
            let answer = arguments(&call).and_then(|ChargeCard { order_id, cents }| {
                match shop.charge(order_id, cents)? {
                    Ok(order) => output(&order),
                    Err(text) => Ok(ToolOutput::error_text(text)),
                }
            });
            std::future::ready(answer)
        }),
    )?;

    let shop = own();
    let name = server.to_owned();
    tools = tools.tool(
        ToolSpec::new("orders_stats")
            .description(
                "Counts the executions of each tool since the start. Behind a cache, any new text \
                 for `ask` gets fresh counts",
            )
            .schema(schema(&[("ask", "string")], &[]))
            .annotations(reads()),
        move |_: Value| {
            let counts = json!({
                "server": name,
                "pid": std::process::id(),
                "executions": shop.executions(),
                "tools": shop.runs(),
            });
            std::future::ready(Ok::<_, String>(counts))
        },
    )?;
    Ok(tools)
}

/// A tool whose required arguments are all integers.
fn spec(name: &str, description: &str, integers: &[&str], hints: Annotations) -> ToolSpec {
    let properties: Vec<_> = integers.iter().map(|name| (*name, "integer")).collect();
    ToolSpec::new(name)
        .description(description)
        .schema(schema(&properties, integers))
        .annotations(hints)
}

fn schema(properties: &[(&str, &str)], required: &[&str]) -> Value {
    let properties: serde_json::Map<String, Value> = properties
        .iter()
        .map(|(name, kind)| ((*name).to_owned(), json!({ "type": kind })))
        .collect();
    json!({ "type": "object", "properties": properties, "required": required })
}

fn reads() -> Annotations {
    let mut hints = Annotations::default();
    hints.read_only_hint = Some(true);
    hints
}

fn sets() -> Annotations {
    let mut hints = adds();
    hints.idempotent_hint = Some(true);
    hints
}

fn adds() -> Annotations {
    let mut hints = Annotations::default();
    hints.read_only_hint = Some(false);
    hints.destructive_hint = Some(false);
    hints.idempotent_hint = Some(false);
    hints
}

fn destroys() -> Annotations {
    let mut hints = Annotations::default();
    hints.destructive_hint = Some(true);
    hints
}

fn arguments<T: DeserializeOwned>(call: &ToolCall) -> Result<T, ToolError> {
    serde_json::from_slice(call.arguments()).map_err(|error| {
        let text = format!("the arguments do not fit the tool: {error}");
        ToolError::new(ErrorKind::InvalidCall, Delivery::Answered, text).with_code(-32602)
    })
}

fn output(value: &Value) -> Result<ToolOutput, ToolError> {
    ToolOutput::json(value)
        .map_err(|error| ToolError::new(ErrorKind::Internal, Delivery::Answered, error.to_string()))
}

#[cfg(test)]
mod tests {
    use callward::ToolServer as _;

    use super::*;

    #[tokio::test]
    async fn every_tool_is_listed_and_one_of_them_without_hints() {
        let listed = tools("orders", &Arc::default())
            .unwrap()
            .list_tools()
            .await
            .unwrap();
        let silent: Vec<_> = listed
            .iter()
            .filter(|tool| *tool.annotations() == Annotations::default())
            .map(|tool| tool.name().as_str())
            .collect();
        assert_eq!(listed.len(), 9);
        assert_eq!(silent, ["add_note"]);
    }
}
