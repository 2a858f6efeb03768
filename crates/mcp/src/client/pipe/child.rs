//! A server run as a child process.

use std::io;
use std::process::Stdio;
use std::time::Duration;

use callward_core::ServerId;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::stderr::LastLines;
use super::supervised::{SUPERVISOR_WAIT, Supervisor, not_started_as, was_not_started};
use crate::client::shared::Loss;
use crate::client::target::CommandSpec;

/// How long the exit status may take once the output has ended, and then the last words.
const STATUS_WAIT: Duration = Duration::from_millis(250);

/// What a child finds in its environment by default: what programs need to find their
/// files and their way to the network, and no secrets.
const SAFE_ENVIRONMENT: [&str; 26] = [
    "APPDATA",
    "COMSPEC",
    "HOME",
    "HOMEDRIVE",
    "HOMEPATH",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "LANG",
    "LC_ALL",
    "LOCALAPPDATA",
    "LOGNAME",
    "NO_PROXY",
    "PATH",
    "PATHEXT",
    "PROGRAMFILES",
    "SHELL",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "SYSTEMROOT",
    "TEMP",
    "TERM",
    "TMP",
    "TMPDIR",
    "TZ",
    "USER",
    "USERPROFILE",
];

/// A running child. Dropping it ends the child and everything that it started.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    /// Its number, which is that of its group too.
    leader: Option<u32>,
    /// Whether the child is a supervisor, which has started the server.
    supervised: bool,
    /// Whether the supervisor said that it could not start the server.
    not_started: bool,
    said: LastLines,
    program: String,
}

impl Process {
    pub(super) fn spawn(
        id: &ServerId,
        spec: &CommandSpec,
        supervisor: Option<&Supervisor>,
    ) -> io::Result<(Self, ChildStdin, ChildStdout)> {
        let mut command = match supervisor {
            Some(supervisor) => supervisor.command(spec),
            None => Command::new(&spec.program),
        };
        command
            .args(&spec.args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // a supervisor is terminated, not killed: it must still end its children
            .kill_on_drop(supervisor.is_none());
        if !spec.whole_environment {
            command.env_clear();
            command.envs(
                SAFE_ENVIRONMENT
                    .iter()
                    .filter_map(|name| Some((name, std::env::var_os(name)?))),
            );
        }
        command.envs(&spec.env);
        // its own process group: the children of npx or uvx can be ended too, and Ctrl-C does not
        // reach it
        #[cfg(unix)]
        command.process_group(0);
        let mut child = command.spawn()?;
        let leader = child.id();
        let said = LastLines::follow(id.clone(), child.stderr.take(), spec);
        match (child.stdin.take(), child.stdout.take()) {
            (Some(stdin), Some(stdout)) => {
                let program = spec.program.to_string_lossy().into_owned();
                let process = Self {
                    child,
                    leader,
                    supervised: supervisor.is_some(),
                    not_started: false,
                    said,
                    program,
                };
                Ok((process, stdin, stdout))
            }
            _ => Err(io::Error::other("the child has no pipes")),
        }
    }

    /// Returns the number that the system knows the child by, while it runs.
    pub(super) fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Returns `true` if the [epitaph](Self::epitaph) showed that the server was not started.
    pub(super) const fn was_not_started(&self) -> bool {
        self.not_started
    }

    /// Returns why the output, named by `reason`, has ended: how the child exited, and, for
    /// operators, what it last said.
    pub(super) async fn epitaph(&mut self, reason: &str) -> Loss {
        let ended = tokio::time::timeout(STATUS_WAIT, self.child.wait()).await;
        // what it said last is still on its way; what it has started may keep the pipe open
        self.said.settle(STATUS_WAIT).await;
        let program = &self.program;
        let how = match ended {
            Ok(Ok(status)) => {
                if let Some(detail) = self.said.last()
                    && self.supervised
                    && was_not_started(program, status, &detail)
                {
                    self.not_started = true;
                    // the server may have ended so, and its output is not for clients
                    let reason = format!("{} ({status})", not_started_as(program));
                    return Loss { reason, detail };
                }
                format!("{program} ended ({status})")
            }
            Ok(Err(error)) => format!("{program} cannot be waited for: {error}"),
            Err(_) => format!("{program} still runs; it is ended and started again"),
        };
        let reason = format!("{reason}: {how}");
        let detail = match self.said.joined() {
            Some(said) => format!("{reason}; it last said: {said}"),
            None => reason.clone(),
        };
        Loss { reason, detail }
    }

    /// Ends the child, whose input is closed already: wait, SIGTERM, wait, SIGKILL.
    pub(super) async fn end(mut self, grace: Duration) {
        if self.has_ended(grace).await {
            return;
        }
        self.terminate();
        if self.has_ended(grace).await {
            return;
        }
        if self.supervised {
            // the second one kills
            self.terminate();
            if self.has_ended(SUPERVISOR_WAIT).await {
                return;
            }
        }
        signal(self.leader, End::Kill);
        // fails only if the child has ended already
        let _ = self.child.kill().await;
    }

    async fn has_ended(&mut self, within: Duration) -> bool {
        let ended = tokio::time::timeout(within, self.child.wait());
        ended.await.is_ok()
    }

    fn terminate(&self) {
        let end = match self.supervised {
            true => End::TerminateLeader,
            false => End::Terminate,
        };
        signal(self.leader, end);
    }
}

impl Drop for Process {
    /// Kills what the child has left behind in its group. Its number is not given to others while
    /// the group has members, and without any there is no process to signal.
    fn drop(&mut self) {
        let runs = self.child.id().is_some();
        if runs && self.supervised {
            // it ends all processes by itself: nothing waits for it
            signal(self.leader, End::TerminateLeader);
        } else {
            signal(self.leader, End::Kill);
        }
    }
}

/// What is done to a child, which leads a process group.
#[derive(Debug, Clone, Copy)]
enum End {
    /// SIGTERM for the child alone. Only for one that was not waited for yet.
    TerminateLeader,
    /// SIGTERM for its group.
    Terminate,
    /// SIGKILL for its group.
    Kill,
}

#[cfg(unix)]
fn signal(leader: Option<u32>, end: End) {
    use rustix::process::{Pid, Signal, kill_process, kill_process_group};

    let leader = leader.and_then(|id| i32::try_from(id).ok());
    let Some(leader) = leader.and_then(Pid::from_raw) else {
        return;
    };
    // fails only if none of these processes is left
    let _ = match end {
        End::TerminateLeader => kill_process(leader, Signal::TERM),
        End::Terminate => kill_process_group(leader, Signal::TERM),
        End::Kill => kill_process_group(leader, Signal::KILL),
    };
}

#[cfg(not(unix))]
fn signal(_: Option<u32>, _: End) {}
