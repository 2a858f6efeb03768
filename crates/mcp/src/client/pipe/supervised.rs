//! How a server is started behind a process that ends it with everything it started.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use tokio::process::Command;

use crate::client::options::UpstreamOptions;

/// The exit code of a supervisor that cannot start the server, as a shell has it.
pub(crate) const NOT_STARTED: u8 = 127;

/// How long a supervisor may take after it was asked to kill all: longer than it tries.
pub(super) const SUPERVISOR_WAIT: Duration = Duration::from_secs(6);

/// Returns the supervisor of `options` and the command that it runs: its words, the grace period,
/// the program. The server's own arguments are to be added.
pub(super) fn command(options: &UpstreamOptions, program: &OsStr) -> Option<Command> {
    let (supervisor, words) = options.supervisor.split_first()?;
    let mut command = Command::new(supervisor);
    command
        .args(words)
        .arg(options.shutdown_grace.as_millis().to_string())
        .arg(program);
    cfg!(target_os = "linux").then_some(command)
}

/// Returns why a program was not started.
pub(crate) fn not_started(program: &str, error: &io::Error) -> String {
    let (what, advice) = (not_started_as(program), start_advice(program));
    format!("{what}: {error}; {advice}")
}

/// Returns what to do about a program that cannot be started.
#[must_use]
pub fn start_advice(program: &str) -> &'static str {
    match (Path::new(program).is_file(), program.contains('/')) {
        (true, true) => "make it executable (`chmod +x`), or start its interpreter with it",
        (true, false) => "a file of this folder needs `./` before its name",
        (false, _) => "check the command and its PATH",
    }
}

pub(super) fn not_started_as(program: &str) -> String {
    format!("{program} cannot be started")
}

/// Returns `true` if these are the exit status and the last output of a supervisor that could not
/// start the server.
pub(super) fn was_not_started(program: &str, status: ExitStatus, said: &str) -> bool {
    status.code() == Some(i32::from(NOT_STARTED)) && said.starts_with(&not_started_as(program))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_advice_fits_what_is_wrong_with_a_program() {
        // tests run in the folder of the crate
        for (program, expected) in [
            ("Cargo.toml", "needs `./`"),
            ("./Cargo.toml", "`chmod +x`"),
            ("./nowhere", "check the command"),
            ("nowhere", "check the command"),
        ] {
            assert!(start_advice(program).contains(expected), "{program}");
        }
    }
}
