//! What a child writes to standard error: for the log and for operators, without its secrets.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::sync::Arc;
use std::time::Duration;

use callward_core::ServerId;
use callward_core::redact::{self, Lines};
use parking_lot::Mutex;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::ChildStderr;
use tokio::task::JoinHandle;

use crate::client::target::CommandSpec;

/// How many of the last lines are kept.
const TAIL_LINES: usize = 5;
/// Longer lines are cut.
const LINE_BYTES: u64 = 4096;

/// The last lines of a child's standard error.
#[derive(Debug)]
pub(super) struct LastLines {
    lines: Arc<Mutex<VecDeque<String>>>,
    forwarding: JoinHandle<()>,
}

impl LastLines {
    /// Reads until the pipe ends.
    pub(super) fn follow(id: ServerId, stderr: ChildStderr, spec: &CommandSpec) -> Self {
        let lines = Arc::default();
        let known = known_secrets(spec);
        Self {
            forwarding: tokio::spawn(forward(id, stderr, known, Arc::clone(&lines))),
            lines,
        }
    }

    /// Waits until the pipe has ended, up to this timeout.
    pub(super) async fn settle(&mut self, within: Duration) {
        if !self.forwarding.is_finished() {
            let _ = tokio::time::timeout(within, &mut self.forwarding).await;
        }
    }

    /// Returns the last one.
    pub(super) fn last(&self) -> Option<String> {
        self.lines.lock().back().cloned()
    }

    /// Returns all of them as one text; nothing if there are none.
    pub(super) fn joined(&self) -> Option<String> {
        let lines = self.lines.lock();
        let joined = Vec::from_iter(lines.iter().map(String::as_str)).join(" | ");
        (!joined.is_empty()).then_some(joined)
    }
}

/// The secrets that the child received, or values that may be.
pub(super) fn known_secrets(spec: &CommandSpec) -> Lines {
    let args = spec.args.iter().map(|arg| arg.to_string_lossy());
    let text = |text: &OsStr| text.to_string_lossy().into_owned();
    // of what it inherits most is not a secret, and useful in a message: paths, languages, names
    let inherited = spec.whole_environment.then(std::env::vars_os);
    let inherited = inherited.into_iter().flatten();
    let inherited = inherited.map(|(name, value)| (text(&name), text(&value)));
    let given = spec.env.values().map(|value| text(value));
    let known = given.chain(spec.secrets.iter().cloned());
    Lines::new(known.chain(redact::secrets_of_process(args, inherited)))
}

async fn forward(
    id: ServerId,
    stderr: ChildStderr,
    mut known: Lines,
    lines: Arc<Mutex<VecDeque<String>>>,
) {
    let mut reader = BufReader::new(stderr);
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut start = (&mut reader).take(LINE_BYTES);
        let Ok(1..) = start.read_until(b'\n', &mut line).await else {
            return;
        };
        let is_cut = line.len() as u64 == LINE_BYTES && !line.ends_with(b"\n");
        let written = String::from_utf8_lossy(&line);
        // nothing is shown of the rest: in it a secret could not be distinguished from its end
        let text = known.redact_next(written.trim_end(), is_cut);
        if is_cut && skip_line(&mut reader).await.is_err() {
            return;
        }
        if text.is_empty() {
            continue;
        }
        tracing::debug!(server = %id, "stderr: {text}");
        let mut lines = lines.lock();
        if lines.len() == TAIL_LINES {
            lines.pop_front();
        }
        lines.push_back(text);
    }
}

/// Reads to the end of a line, and keeps none of it.
async fn skip_line(reader: &mut BufReader<ChildStderr>) -> std::io::Result<()> {
    let mut skipped = Vec::new();
    while !skipped.ends_with(b"\n") {
        skipped.clear();
        let mut some = (&mut *reader).take(LINE_BYTES);
        if some.read_until(b'\n', &mut skipped).await? == 0 {
            break;
        }
    }
    Ok(())
}
