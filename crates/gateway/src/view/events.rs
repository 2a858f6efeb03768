//! The events of a router, one line each.

use std::time::Duration;

use serde_json::Value;

use crate::config::show_duration;
use crate::output::Tone;

/// Returns an event as a line with its severity.
pub(crate) fn event(event: &Value) -> (String, Option<Tone>) {
    let of = |key: &str| event[key].as_str().unwrap_or_default();
    let (set, server, tool, reason) = (of("set"), of("server"), of("tool"), of("reason"));
    let affinity = || {
        let key = event["key"]
            .as_str()
            .map_or_else(|| event["key"].to_string(), ToOwned::to_owned);
        format!("{} {key} in {set}", of("by"))
    };
    match of("type") {
        "routeDecision" => (format!("decision  {}", decision(event)), None),
        "routeFailed" => {
            let line = format!("failed    {}: {}", decision(event), of("error"));
            (line, Some(Tone::Bad))
        }
        "healthUpdate" => {
            let tool = event["tool"]
                .as_str()
                .map_or_else(String::new, |tool| format!(", tool {tool}"));
            let (from, to) = (of("from"), of("to"));
            let tone = if to == "healthy" {
                Tone::Good
            } else {
                Tone::Doubtful
            };
            let line = format!("health    {server} of {set}{tool}: {from} -> {to}, for {reason}");
            (line, Some(tone))
        }
        "affinitySet" => {
            let ttl = Duration::from_millis(event["ttl_ms"].as_u64().unwrap_or_default());
            let (affinity, ttl) = (affinity(), show_duration(ttl));
            let line = format!("affinity  {affinity} goes to {server} for {ttl}");
            (line, Some(Tone::Aside))
        }
        "affinityExpired" => {
            let line = format!("affinity  {} leaves {server}: {reason}", affinity());
            (line, Some(Tone::Aside))
        }
        "toolRefused" => {
            let line = format!("refused   {tool} of {server}: {reason}");
            (line, Some(Tone::Doubtful))
        }
        "toolRenamed" => {
            let name = of("name");
            let line =
                format!("renamed   {set}.{tool} is `{name}`: its own name belongs to another tool");
            (line, Some(Tone::Doubtful))
        }
        "missed" => {
            let count = &event["events"];
            let line = format!("missed    {count} events: this reader is too slow");
            (line, Some(Tone::Doubtful))
        }
        _ => {
            let line = "other     an event that this version does not know".to_owned();
            (line, Some(Tone::Aside))
        }
    }
}

/// Describes how a server was chosen.
fn decision(event: &Value) -> String {
    let of = |key: &str| event[key].as_str().unwrap_or_default();
    let number = |key: &str| event[key].as_u64().unwrap_or_default();
    let mut line = format!("{}.{}", of("set"), of("tool"));
    if number("attempt") > 1 {
        line += &format!(" attempt {}", number("attempt"));
    }
    if event["beside"] == true {
        line += " beside a slow one";
    }
    line += &format!(" -> {}", event["chosen"].as_str().unwrap_or("no server"));
    // the strategy is shown in any case
    if of("reason") != of("strategy") {
        line += &format!(", {}", of("reason"));
    }
    let (eligible, servers) = (number("eligible"), number("servers"));
    line += &format!(" ({}, {eligible} of {servers} eligible", of("strategy"));
    if number("refused_before") > 0 {
        line += &format!(", {} refused before", number("refused_before"));
    }
    for candidate in event["candidates"].as_array().into_iter().flatten() {
        if let (Some(unfit), Some(server)) =
            (candidate["unfit"].as_str(), candidate["server"].as_str())
        {
            line += &format!(", {server} ({}) {unfit}", candidate["weight"]);
        }
    }
    if let Some(next) = event["alternates"][0].as_str() {
        line += &format!(", next {next}");
    }
    line + ")"
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn each_event_is_one_line() {
        let decision = |chosen| {
            json!({
                "type": "routeDecision", "set": "orders", "tool": "get_order", "attempt": 1,
                "beside": false, "refused_before": 0, "strategy": "round_robin",
                "rule": {"words": "any"}, "servers": 2, "eligible": 2, "chosen": chosen,
                "candidates": [
                    {"server": "a", "weight": 80, "unfit": null},
                    {"server": "b", "weight": 20, "unfit": "draining"},
                ],
                "alternates": ["b"], "reason": "in turn",
            })
        };
        let mut again = decision(json!("a"));
        again["attempt"] = json!(2);
        again["beside"] = json!(true);
        again["refused_before"] = json!(1);
        let mut failed = decision(json!(null));
        failed["type"] = json!("routeFailed");
        failed["error"] = json!("no_eligible_server");
        failed["alternates"] = json!([]);
        for (event, line) in [
            (
                decision(json!("a")),
                "decision  orders.get_order -> a, in turn (round_robin, 2 of 2 eligible, b (20) \
                 draining, next b)",
            ),
            (
                again,
                "decision  orders.get_order attempt 2 beside a slow one -> a, in turn \
                 (round_robin, 2 of 2 eligible, 1 refused before, b (20) draining, next b)",
            ),
            (
                failed,
                "failed    orders.get_order -> no server, in turn (round_robin, 2 of 2 eligible, \
                 b (20) draining): no_eligible_server",
            ),
            (
                json!({"type": "healthUpdate", "set": "orders", "server": "a", "from": "healthy",
                       "to": "open", "reason": "5 failures in a row"}),
                "health    a of orders: healthy -> open, for 5 failures in a row",
            ),
            (
                json!({"type": "affinitySet", "set": "orders", "by": "session", "key": "1f",
                       "server": "a", "ttl_ms": 90_000}),
                "affinity  session 1f in orders goes to a for 1m 30s",
            ),
            (
                json!({"type": "affinityExpired", "set": "orders", "by": "user", "key": 7,
                       "server": "a", "reason": "ttl"}),
                "affinity  user 7 in orders leaves a: ttl",
            ),
            (
                json!({"type": "toolRefused", "set": "orders", "server": "a", "tool": "get_order",
                       "reason": "listed twice"}),
                "refused   get_order of a: listed twice",
            ),
            (
                json!({"type": "toolRenamed", "set": "orders", "tool": "find",
                       "name": "orders__find"}),
                "renamed   orders.find is `orders__find`: its own name belongs to another tool",
            ),
            (
                json!({"type": "missed", "events": 3}),
                "missed    3 events: this reader is too slow",
            ),
            (
                json!({"type": "somethingNew", "x": 1}),
                "other     an event that this version does not know",
            ),
        ] {
            assert_eq!(super::event(&event).0, line);
        }
    }
}
