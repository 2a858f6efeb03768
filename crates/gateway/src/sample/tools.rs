//! The shop as a set of tools: some declare hints, some leave it to their name.

use std::sync::Arc;
use std::time::Duration;

use callward::{
    Annotations, Delivery, ErrorKind, ToolCall, ToolError, ToolOutput, ToolSpec, Tools,
};
use serde_json::{Map, Value, json};

use super::orders::Orders;
use crate::error::AppError;
use crate::table::split;

/// How long the slow report takes, unless the caller says otherwise.
pub(crate) const REPORT_MS: u64 = 300;
/// The longest a caller may make it take.
const REPORT_MS_MAX: u64 = 60_000;

/// The tools: name, what they do to orders, arguments with their types, and description. An
/// argument whose type ends in `?` is optional.
const TOOLS: [&str; 9] = [
    "get_order | reads | order_id: integer | Returns one order",
    "list_orders | reads | status: string? | Lists orders, all or those of one status",
    "sales_report | reads | region: string, delay_ms: integer? | Builds a report; slow",
    "set_status | sets | order_id: integer, status: string | Sets the status of an order",
    "add_note | no hints | order_id: integer, text: string | Adds a note to an order",
    "delete_order | destroys | order_id: integer | Deletes an order for good",
    "get_exchange_rate | reads | from: string, to: string | Returns a rate; fails the first time it \
     is asked for a pair",
    "charge_card | adds | order_id: integer, cents: integer | Charges the card of an order; the \
     first charge happens, then the answer fails",
    "orders_stats | reads | ask: string? | Counts the executions of each tool since the start. \
     Behind a cache, any new text for `ask` gets fresh counts",
];

/// Returns the tools of one server over the shop.
///
/// # Errors
///
/// None in practice: names and hints are fixed, and a test lists them.
pub(super) fn tools(server: &str, orders: &Arc<Orders>) -> Result<Tools, AppError> {
    let mut tools = Tools::new(server)?;
    for tool in TOOLS {
        let [name, effect, arguments, description] = split(tool);
        let spec = ToolSpec::new(name)
            .description(description)
            .schema(schema(arguments))
            .annotations(hints(effect));
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
        let added = tools.service(spec, service);
        tools = added.map_err(|error| AppError::Usage(error.to_string()))?;
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
    let id = || input.number("order_id");
    Ok(match tool {
        "get_order" => shop.change(id()?, |_| {}),
        "list_orders" => Ok(shop.list(input.0.get("status").and_then(Value::as_str))),
        "sales_report" => {
            let region = input.text("region")?;
            let delay = input.0.get("delay_ms").and_then(Value::as_u64);
            let delay = delay.unwrap_or(REPORT_MS).min(REPORT_MS_MAX);
            tokio::time::sleep(Duration::from_millis(delay)).await;
            Ok(shop.report(region))
        }
        "set_status" => {
            let status = input.text("status")?;
            shop.change(id()?, |order| status.clone_into(&mut order.status))
        }
        "add_note" => {
            let text = input.text("text")?.to_owned();
            shop.change(id()?, |order| order.notes.push(text))
        }
        "delete_order" => shop.delete(id()?),
        "get_exchange_rate" => {
            let (from, to) = (input.text("from")?, input.text("to")?);
            let pair = format!("rate {from} {to}");
            shop.fail_once(pair, "the rate service is restarting")?;
            Ok(json!({ "from": from, "to": to, "rate": 1.08 }))
        }
        "charge_card" => {
            let (id, cents) = (id()?, input.number("cents")?);
            let charged = shop.change(id, |order| order.charged_cents += cents);
            if charged.is_ok() {
                let message = "the payment service broke off after charging";
                shop.fail_once(format!("charge {id}"), message)?;
            }
            charged
        }
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

fn schema(arguments: &str) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for argument in arguments.split(", ") {
        let (name, kind) = argument.split_once(": ").unwrap_or((argument, "string"));
        if !kind.ends_with('?') {
            required.push(name);
        }
        let kind = json!({ "type": kind.trim_end_matches('?') });
        properties.insert(name.to_owned(), kind);
    }
    json!({ "type": "object", "properties": properties, "required": required })
}

/// Returns what a tool declares. One declares nothing: its effect is concluded from its name.
fn hints(effect: &str) -> Annotations {
    let hints = Annotations::default();
    match effect {
        "reads" => hints.with_read_only(true),
        "destroys" => hints.with_destructive(true),
        "sets" | "adds" => {
            let changes = hints.with_read_only(false).with_destructive(false);
            changes.with_idempotent(effect == "sets")
        }
        _ => hints,
    }
}
