//! The decision trail as a table.

use callward::Trail;
use callward::core::trail::{Decision, Verdict};
use serde::Deserialize;
use serde_json::Value;

use crate::output::{Cell, Table, Tone};

/// Turns a trail, as it is in JSON, into a table. `None` if it cannot be read, such as that
/// of an older gateway.
pub(crate) fn table(trail: &Value) -> Option<Table> {
    let trail = Trail::deserialize(trail).ok()?;
    let mut table = Table::new(&Trail::COLUMNS);
    for (decision, row) in trail.decisions.iter().zip(trail.rows()) {
        // those of the verdict and the reason
        let tones = [None, None, tone(decision), None, None, Some(Tone::Aside)];
        let cells = row.into_iter().zip(tones);
        table.row(cells.map(|(text, tone)| Cell::toned(text, tone)).collect());
    }
    Some(table)
}

/// Returns the colour of a verdict; `None` for a neutral one.
const fn tone(decision: &Decision) -> Option<Tone> {
    Some(match decision.verdict {
        Verdict::Refused | Verdict::Nobody | Verdict::Failed | Verdict::Ended => Tone::Bad,
        Verdict::Ask
        | Verdict::Cancelled
        | Verdict::Dropped
        | Verdict::Extended
        | Verdict::Probe
        | Verdict::Retry
        | Verdict::Stale
        | Verdict::Stop
        | Verdict::ToolError
        | Verdict::Waited => Tone::Doubtful,
        Verdict::Answered | Verdict::Hit | Verdict::Joined | Verdict::Won => Tone::Good,
        _ => return None,
    })
}
