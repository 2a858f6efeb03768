//! A server run as a child process.

use std::io;
use std::process::Stdio;
use std::time::Duration;

use callward_core::ServerId;
#[cfg(unix)]
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::stderr::LastLines;
use super::supervised::{self, SUPERVISOR_WAIT, not_started_as, was_not_started};
use crate::client::options::UpstreamOptions;
use crate::client::shared::Loss;
use crate::client::target::CommandSpec;

/// How long the exit status may take once the output has ended, and then the last lines of its
/// standard error.
const STATUS_WAIT: Duration = Duration::from_millis(250);

/// What a child finds in its environment by default: what programs need to find their
/// files and their way to the network, and no secrets.
const SAFE_ENVIRONMENT: &str = "APPDATA COMSPEC HOME HOMEDRIVE HOMEPATH HTTPS_PROXY HTTP_PROXY LANG \
    LC_ALL LOCALAPPDATA LOGNAME NO_PROXY PATH PATHEXT PROGRAMFILES SHELL SSL_CERT_DIR SSL_CERT_FILE \
    SYSTEMROOT TEMP TERM TMP TMPDIR TZ USER USERPROFILE";

/// A running child. Dropping it ends the child and everything that it started.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    /// Its number, which is that of its group too.
    leader: Option<u32>,
    /// Whether the child is a supervisor, which has started the server.
    supervised: bool,
    said: LastLines,
    program: String,
}

impl Process {
    pub(super) fn spawn(
        id: &ServerId,
        spec: &CommandSpec,
        options: &UpstreamOptions,
    ) -> io::Result<(Self, ChildStdin, ChildStdout)> {
        let supervisor = supervised::command(options, &spec.program);
        let supervised = supervisor.is_some();
        let mut command = supervisor.unwrap_or_else(|| Command::new(&spec.program));
        command
            .args(&spec.args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // a supervisor is terminated, not killed: it must still end its children
            .kill_on_drop(!supervised);
        if !spec.whole_environment {
            command.env_clear();
            let names = SAFE_ENVIRONMENT.split_whitespace();
            command.envs(names.filter_map(|name| Some((name, std::env::var_os(name)?))));
        }
        command.envs(&spec.env);
        // its own process group: the children of npx or uvx can be ended too, and Ctrl-C does not
        // reach it
        #[cfg(unix)]
        command.process_group(0);
        let mut child = command.spawn()?;
        let leader = child.id();
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(io::Error::other("the child has no pipes"));
        };
        let process = Self {
            child,
            leader,
            supervised,
            said: LastLines::follow(id.clone(), stderr, spec),
            program: spec.program.to_string_lossy().into_owned(),
        };
        Ok((process, stdin, stdout))
    }

    /// Returns the number that the system knows the child by, while it runs.
    pub(super) fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Returns why the output, named by `reason`, has ended: how the child exited, and, for
    /// operators, the last lines of its standard error.
    pub(super) async fn exit_reason(&mut self, reason: &str) -> Loss {
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
                    // the server may have ended so, and its output is not for clients
                    let reason = format!("{} ({status})", not_started_as(program));
                    return Loss {
                        reason,
                        detail,
                        not_started: true,
                    };
                }
                format!("{program} ended ({status})")
            }
            Ok(Err(error)) => format!("{program} cannot be waited for: {error}"),
            Err(_) => format!("{program} still runs; it is ended and started again"),
        };
        let mut loss = Loss::from(format!("{reason}: {how}"));
        if let Some(said) = self.said.joined() {
            loss.detail = format!("{}; it last said: {said}", loss.reason);
        }
        loss
    }

    /// Ends the child, whose input is closed already: wait, SIGTERM, wait, SIGKILL.
    pub(super) async fn end(mut self, grace: Duration) {
        let mut waits = vec![grace, grace];
        // the second SIGTERM makes a supervisor kill
        waits.extend(self.supervised.then_some(SUPERVISOR_WAIT));
        for (terminated, wait) in waits.into_iter().enumerate() {
            if terminated > 0 {
                let end = match self.supervised {
                    true => End::TerminateLeader,
                    false => End::Terminate,
                };
                signal(self.leader, end);
            }
            if tokio::time::timeout(wait, self.child.wait()).await.is_ok() {
                return;
            }
        }
        signal(self.leader, End::Kill);
        // fails only if the child has ended already
        let _ = self.child.kill().await;
    }
}

impl Drop for Process {
    /// Kills what the child has left behind in its group. Its number is not given to others while
    /// the group has members, and without any there is no process to signal.
    fn drop(&mut self) {
        let end = match self.child.id() {
            // it ends all processes by itself: nothing waits for it
            Some(_) if self.supervised => End::TerminateLeader,
            _ => End::Kill,
        };
        signal(self.leader, end);
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

/// Fails only if none of these processes is left.
fn signal(leader: Option<u32>, end: End) {
    #[cfg(unix)]
    if let Some(leader) = leader.and_then(|id| Pid::from_raw(id.try_into().ok()?)) {
        let _ = match end {
            End::TerminateLeader => kill_process(leader, Signal::TERM),
            End::Terminate => kill_process_group(leader, Signal::TERM),
            End::Kill => kill_process_group(leader, Signal::KILL),
        };
    }
    #[cfg(not(unix))]
    let _ = (leader, end);
}
