//! A custom strategy: calls stay in their zone until each server there is busy.
//! `cargo run --example custom_strategy`.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::sync::Arc;

use callward::router::{Candidates, Member, Pool, Router, Strategy};
use callward::{Tool, ToolCall, ToolError, ToolOutput, Weight};
use tower::Service;

/// Stays in a zone until each server there has this many calls.
#[derive(Debug)]
struct Near {
    zone: &'static str,
    most: usize,
}

impl Strategy for Near {
    fn name(&self) -> &'static str {
        "near"
    }

    fn choose(&self, candidates: &Candidates<'_>) -> Option<usize> {
        // servers that the call may not go to, or that are unavailable, are not among them
        let (index, _) = candidates.iter().min_by_key(|(_, server)| {
            let is_home =
                server.zone.as_deref() == Some(self.zone) && server.in_flight() < self.most;
            (!is_home, server.in_flight())
        })?;
        Some(index)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut members = Vec::new();
    for (id, zone, weight) in [
        ("fra-1", "eu", 80),
        ("fra-2", "eu", 20),
        ("iad-1", "us", 60),
    ] {
        let service =
            tower::service_fn(|_: ToolCall| async { Ok::<_, ToolError>(ToolOutput::text("done")) });
        let member = Member::new(id.parse()?, service).with_zone(zone);
        members.push(member.with_weight(Weight::new(weight)?));
    }
    let reads = Tool::read_only("get_order")?;
    let deletes = Tool::destructive("delete_order")?;
    let pool = Arc::new(Pool::new());
    pool.set_members(reads.set().clone(), members);
    let near = Near {
        zone: "eu",
        most: 2,
    };
    let mut router = Router::new(pool).with_custom_strategy(Arc::new(near));

    // calls in flight: none of them is awaited
    let mut in_flight = Vec::new();
    for tool in [&reads, &reads, &reads, &reads, &reads, &deletes, &deletes] {
        let call = ToolCall::new(tool.clone(), "{}");
        let chosen = router.decide(&call).ok_or("no server may take the call")?;
        println!("{:12} ->  {chosen}", tool.name().as_str());
        in_flight.push(router.call(call));
    }
    Ok(())
}
