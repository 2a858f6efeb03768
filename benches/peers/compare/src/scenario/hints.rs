//! What tools say of themselves: does it get through as it was said?

use peers_load::{Client, Endpoint, Era};
use serde_json::{Map, Value};

use crate::Outcome;
use crate::figures::Hints;

pub(crate) async fn run(upstream: &Endpoint, peer: &Endpoint) -> Outcome<Hints> {
    let said = Client::connect(upstream, Era::Legacy)
        .await?
        .tools()
        .await?;
    let heard = Client::settled(peer, Era::Legacy).await?.tools().await?;
    Ok(compare(&said, &heard))
}

fn compare(said: &[Value], heard: &[Value]) -> Hints {
    let mut found = Hints::default();
    let none = Map::new();
    for tool in said {
        let hints = tool["annotations"].as_object().unwrap_or(&none);
        found.declared += hints.len() as u64;
        let name = tool["name"].as_str().unwrap_or_default();
        let same = |heard: &&Value| {
            heard["name"]
                .as_str()
                .is_some_and(|own| own.ends_with(name))
        };
        let Some(through) = heard
            .iter()
            .filter(same)
            .min_by_key(|own| own["name"].to_string().len())
        else {
            found.missing_tools += 1;
            continue;
        };
        let through = through["annotations"].as_object().unwrap_or(&none);
        let kept = |(hint, value): &(&String, &Value)| through.get(*hint) == Some(*value);
        let declared = |(hint, value): &(&String, &Value)| hints.get(*hint) == Some(*value);
        found.kept += hints.iter().filter(kept).count() as u64;
        // null is how some write what is not there
        let there = through.iter().filter(|(_, value)| !value.is_null());
        found.changed += there.filter(|hint| !declared(hint)).count() as u64;
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_hint_is_kept_lost_or_changed() {
        let said = [
            json!({ "name": "a", "annotations": { "readOnlyHint": false, "title": "A" } }),
            json!({ "name": "b", "annotations": { "openWorldHint": false } }),
            json!({ "name": "c" }),
        ];
        let heard = [
            json!({ "name": "up_a", "annotations": { "readOnlyHint": null, "title": "A" } }),
            json!({ "name": "up_b", "annotations": { "openWorldHint": true } }),
        ];
        let expected = Hints {
            declared: 3,
            kept: 1,
            changed: 1,
            missing_tools: 1,
        };
        assert_eq!(compare(&said, &heard), expected);
    }
}
