//! `callward replay`: the cache on recorded traffic, beside other policies.

mod calls;
mod keys;

use std::path::Path;

use crate::args::Replay;
use crate::error::{AppError, Outcome};

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
