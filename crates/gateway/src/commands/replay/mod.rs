//! `callward replay`: the cache on recorded traffic, beside other policies.

mod calls;
mod keys;

use std::path::Path;

use callward_replay::report::{Grid, Mark};

use crate::args::Replay;
use crate::error::{AppError, Outcome};
use crate::output::Tone;
use crate::table::{Cell, Table};

pub(crate) async fn run(args: Replay) -> Outcome {
    super::on_a_thread(move || replay(&args)).await
}

fn replay(args: &Replay) -> Outcome {
    match (&args.keys, &args.recorded.calls) {
        (Some(file), _) => keys::run(file, args),
        (None, Some(file)) => calls::run(file, args),
        (None, None) => Err(AppError::Usage(
            "replay: name a file with --keys or --calls".into(),
        )),
    }
}

/// Returns the name of a file for messages.
fn named(file: &Path) -> String {
    if file.as_os_str() == "-" {
        return "standard input".into();
    }
    file.display().to_string()
}

/// Writes what was found to standard output.
fn show(grid: &Grid) {
    let mut table = Table::new(grid.headings.iter().copied());
    for row in &grid.rows {
        let cell = |cell: &callward_replay::report::Cell| {
            let tone = match cell.mark {
                Mark::Good => Some(Tone::Good),
                Mark::Doubtful => Some(Tone::Doubtful),
                Mark::Bad => Some(Tone::Bad),
                _ => None,
            };
            Cell::toned(&cell.text, tone)
        };
        table.row(row.iter().map(cell).collect());
    }
    table.print();
}
