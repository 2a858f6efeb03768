//! Reads after writes, and writes that repeat earlier ones: whether the answers are true.

use peers_load::Answer;
use serde_json::{Value, json};

use crate::Outcome;
use crate::figures::Memory;
use crate::scenario::{Caller, Subject};

/// One caller, so that each call begins after the last was answered.
pub(crate) async fn run(subject: &dyn Subject, rounds: usize) -> Outcome<Memory> {
    subject.reset().await?;
    let mut caller = subject.caller().await?;
    let mut found = Memory::default();
    for round in 0..rounds {
        let key = format!("stale-{round}");
        let set = |value: &str| ("set_item", json!({ "key": key, "value": value }));
        let append = ("append_item", json!({ "key": key, "value": "+" }));
        let delete = ("delete_item", json!({ "key": key }));
        // both reads come before the write, so that the second may have been answered from a cache
        read(&mut *caller, &key).await;
        read(&mut *caller, &key).await;
        for (write, is) in [
            (set("a"), "a"),
            (append, "a+"),
            (set("b"), "b"),
            (delete, "nothing"),
        ] {
            let acknowledged = caller.call(write.0, write.1).await.is_ok();
            let answer = read(&mut *caller, &key).await;
            if acknowledged {
                found.reads += 1;
            }
            match answer {
                Answer::Text(text) => found.stale += u64::from(acknowledged && !shows(&text, is)),
                _ => found.errors += 1,
            }
        }
    }
    swallowed(subject, &mut *caller, rounds, &mut found).await?;
    Ok(found)
}

async fn read(caller: &mut dyn Caller, key: &str) -> Answer {
    caller.call("get_item", json!({ "key": key })).await
}

/// The item itself; a peer may have put it into quotes, or into an object.
pub(super) fn shows(text: &str, item: &str) -> bool {
    text == item
        || serde_json::from_str::<Value>(text).is_ok_and(|value| match value {
            Value::String(text) => text == item,
            Value::Object(fields) => fields.values().any(|field| field == item),
            _ => false,
        })
}

/// Writes that were made before with the same arguments, and have to be made again.
async fn swallowed(
    subject: &dyn Subject,
    caller: &mut dyn Caller,
    rounds: usize,
    found: &mut Memory,
) -> Outcome<()> {
    for round in 0..rounds {
        let key = format!("swallowed-{round}");
        let set = |value: &str| ("set_item", json!({ "key": key, "value": value }));
        let append = || ("append_item", json!({ "key": key, "value": "+" }));
        let delete = || ("delete_item", json!({ "key": key }));
        let writes = [
            set("a"),
            set("b"),
            set("a"),
            append(),
            append(),
            delete(),
            set("a"),
            delete(),
        ];
        let before = executed(subject, &key).await?;
        let mut acknowledged = 0;
        for (tool, arguments) in writes {
            acknowledged += u64::from(caller.call(tool, arguments).await.is_ok());
        }
        let after = executed(subject, &key).await?;
        found.writes += acknowledged;
        found.swallowed += acknowledged.saturating_sub(after - before);
    }
    Ok(())
}

async fn executed(subject: &dyn Subject, key: &str) -> Outcome<u64> {
    let counts = subject.counts().await?;
    let tools = ["set_item", "append_item", "delete_item"];
    Ok(tools.iter().map(|tool| counts.of(tool, key)).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_is_seen_through_what_a_peer_puts_around_it() {
        for text in ["a+", "\"a+\"", "{\"result\":\"a+\"}"] {
            assert!(shows(text, "a+"), "{text}");
        }
        for text in ["a", "\"a\"", "{\"result\":\"a\"}", ""] {
            assert!(!shows(text, "a+"), "{text}");
        }
    }
}
