//! What the profiles change in what reaches a server, through the whole stack.

use callward::{Delivery, ErrorKind, Profile, Stack};
use serde_json::{Value, json};

use crate::bed::{alone, failing, read, tool};

fn writing(name: &str, idempotent: bool, destructive: bool) -> Value {
    let hints = json!({"readOnlyHint": false, "idempotentHint": idempotent,
        "destructiveHint": destructive});
    tool(name, hints)
}

/// Calls a tool of a server that fails at first, and counts how often it ran.
async fn runs(profile: Profile, tool: &str, fails: usize, calls: usize) -> usize {
    let service = failing(fails, ErrorKind::ServerFault, Delivery::Answered);
    let tools = vec![
        read("list_orders"),
        writing("rename_order", true, false),
        writing("add_order", false, false),
        writing("cancel_order", true, true),
        writing("refund_order", false, true),
    ];
    let (stack, _) = alone(Stack::builder().profile(profile), tools, &service).await;
    for _ in 0..calls {
        // how often a call ran shows whether it is retried
        let _ = stack.call(&format!("s.{tool}"), json!({"id": 1})).await;
    }
    service.started()
}

#[tokio::test(start_paused = true)]
async fn each_profile_retries_and_keeps_what_its_system_does_and_nothing_else() {
    let most = &["standard", "strict", "neurolink", "epd"][..];
    for (tool, retried_by, kept_by) in [
        ("list_orders", Profile::NAMES, Profile::NAMES),
        ("rename_order", most, most),
        ("add_order", &[], &[]),
        ("cancel_order", &["epd"], &[]),
        ("refund_order", &[], &[]),
    ] {
        for profile in Profile::NAMES
            .iter()
            .flat_map(|name| Profile::by_name(name))
        {
            let name = profile.name;
            let want = if retried_by.contains(&name) { 2 } else { 1 };
            let ran = runs(profile.clone(), tool, 1, 1).await;
            assert_eq!(ran, want, "{tool} under {name}, retried");
            let want = if kept_by.contains(&name) { 1 } else { 2 };
            let ran = runs(profile, tool, 0, 2).await;
            assert_eq!(ran, want, "{tool} under {name}, kept");
        }
    }
}
