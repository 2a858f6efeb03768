//! Many identical reads at once: how often does the tool run?

use serde_json::json;

use crate::Outcome;
use crate::figures::Stampede;
use crate::scenario::{Subject, all, failed, slowest};

const CALLERS: usize = 64;

pub(crate) async fn run(subject: &dyn Subject) -> Outcome<Stampede> {
    subject.reset().await?;
    let call = ("slow_get", json!({ "key": "stampede", "ms": 300 }));
    let answers = all(subject, CALLERS, vec![call; CALLERS]).await?;
    Ok(Stampede {
        callers: CALLERS as u64,
        executed: subject.counts().await?.all("slow_get"),
        errors: failed(&answers),
        slowest_seconds: slowest(&answers),
    })
}
