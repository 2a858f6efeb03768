//! The shop as a set of tools: some declare hints, some leave it to their name.

use std::sync::Arc;
use std::time::Duration;

use callward::{
    Annotations, Delivery, ErrorKind, ToolCall, ToolError, ToolOutput, ToolSpec, Tools,
};
use serde_json::{Map, Value, json};

use super::orders::Orders;

/// How long the slow report takes, unless the caller says otherwise.
pub(crate) const REPORT_MS: u64 = 300;
/// The longest a caller may make it take.
const REPORT_MS_MAX: u64 = 60_000;

/// One tool: its name, description, arguments with their types, and hints. Arguments whose type
/// ends in `?` are optional.
type Row = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
    fn() -> Annotations,
);

const TOOLS: [Row; 9] = [
    (
        "get_order",
        "Returns one order",
        &[("order_id", "integer")],
        reads,
    ),
    (
        "list_orders",
        "Lists orders, all or those of one status",
        &[("status", "string?")],
        reads,
    ),
    (
        "sales_report",
        "Builds a report; slow",
        &[("region", "string"), ("delay_ms", "integer?")],
        reads,
    ),
    (
        "set_status",
        "Sets the status of an order",
        &[("order_id", "integer"), ("status", "string")],
        sets,
    ),
    // no hints at all: what this does is concluded from the name
    (
        "add_note",
        "Adds a note to an order",
        &[("order_id", "integer"), ("text", "string")],
        Annotations::default,
    ),
    (
        "delete_order",
        "Deletes an order for good",
        &[("order_id", "integer")],
        destroys,
    ),
    (
        "get_exchange_rate",
        "Returns a rate; fails the first time it is asked for a pair",
        &[("from", "string"), ("to", "string")],
        reads,
    ),
    (
        "charge_card",
        "Charges the card of an order; the first charge happens, then the answer fails",
        &[("order_id", "integer"), ("cents", "integer")],
        adds,
    ),
    (
        "orders_stats",
        "Counts the executions of each tool since the start. Behind a cache, any new text for `ask` \
         gets fresh counts",
        &[("ask", "string?")],
        reads,
    ),
];

/// Returns the tools of one server over the shop.
///
/// # Errors
///
/// None in practice: names and hints are fixed, and a test lists them.
pub(crate) fn tools(
    server: &str,
    orders: &Arc<Orders>,
) -> Result<Tools, Box<dyn std::error::Error>> {
    let mut tools = Tools::new(server)?;
    for (name, description, arguments, hints) in TOOLS {
        let spec = ToolSpec::new(name)
            .description(description)
            .schema(schema(arguments))
            .annotations(hints());
        let (orders, server) = (orders.clone(), server.to_owned());
        let service = tower::service_fn(move |call: ToolCall| {
            let (orders, server) = (orders.clone(), server.clone());
            async move {
                let input = Input(serde_json::from_slice(call.arguments()).map_err(unfit)?);
                match run(name, &orders, &server, &input).await? {
                    Ok(value) => ToolOutput::json(&value).map_err(|error| {
                        let text = error.to_string();
                        ToolError::new(ErrorKind::Internal, Delivery::Answered, text)
                    }),
                    Err(text) => Ok(ToolOutput::error_text(text)),
                }
            }
        });
        tools = tools.service(spec, service)?;
    }
    Ok(tools)
}

/// Runs one tool. The inner error is a result that reports one.
async fn run(
    tool: &'static str,
    shop: &Arc<Orders>,
    server: &str,
    input: &Input,
) -> Result<Result<Value, String>, ToolError> {
    let _run = (tool != "orders_stats").then(|| shop.start(tool));
    Ok(match tool {
        "get_order" => shop.get(input.number("order_id")?),
        "list_orders" => Ok(shop.list(input.0.get("status").and_then(Value::as_str))),
        "sales_report" => {
            let region = input.text("region")?;
            let delay = input.0.get("delay_ms").and_then(Value::as_u64);
            let delay = delay.unwrap_or(REPORT_MS).min(REPORT_MS_MAX);
            tokio::time::sleep(Duration::from_millis(delay)).await;
            Ok(shop.report(region))
        }
        "set_status" => shop.set_status(input.number("order_id")?, input.text("status")?),
        "add_note" => shop.add_note(input.number("order_id")?, input.text("text")?),
        "delete_order" => shop.delete(input.number("order_id")?),
        "get_exchange_rate" => Ok(shop.exchange_rate(input.text("from")?, input.text("to")?)?),
        "charge_card" => shop.charge(input.number("order_id")?, input.number("cents")?)?,
        _ => Ok(json!({
            "server": server,
            "pid": std::process::id(),
            "executions": shop.executions(),
            "tools": shop.runs(),
        })),
    })
}

/// The arguments of a call.
struct Input(Map<String, Value>);

impl Input {
    fn number(&self, name: &str) -> Result<u64, ToolError> {
        let number = self.0.get(name).and_then(Value::as_u64);
        number.ok_or_else(|| unfit(format_args!("`{name}` is not a whole number")))
    }

    fn text(&self, name: &str) -> Result<&str, ToolError> {
        let text = self.0.get(name).and_then(Value::as_str);
        text.ok_or_else(|| unfit(format_args!("`{name}` is not a string")))
    }
}

fn unfit(error: impl std::fmt::Display) -> ToolError {
    let text = format!("the arguments do not fit the tool: {error}");
    ToolError::new(ErrorKind::InvalidCall, Delivery::Answered, text).with_code(-32602)
}

fn schema(arguments: &[(&str, &str)]) -> Value {
    let kind = |kind: &str| json!({ "type": kind.trim_end_matches('?') });
    let properties = arguments
        .iter()
        .map(|(name, of)| ((*name).to_owned(), kind(of)));
    let properties: Map<String, Value> = properties.collect();
    let required = arguments.iter().filter(|(_, kind)| !kind.ends_with('?'));
    let required: Vec<_> = required.map(|(name, _)| name).collect();
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
