//! A server run as a child process.

use std::collections::VecDeque;
use std::io;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;
use tollgate_core::ServerId;

use super::supervised::{SUPERVISOR_WAIT, Supervisor, was_not_started};
use crate::upstream::target::CommandSpec;

/// How many of the last lines of standard error are kept for the error text.
const TAIL_LINES: usize = 5;
/// Longer lines of standard error are cut.
const TAIL_LINE_BYTES: u64 = 4096;
/// How long the exit status may take once the output has ended, and then the last words.
const STATUS_WAIT: Duration = Duration::from_millis(250);

/// What a child finds in its environment unless told otherwise: what programs need to find their
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

/// A running child. Dropped, it is ended, with everything it started.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    group: Group,
    /// Whether the child is a supervisor, which has started the server.
    supervised: bool,
    /// Whether the supervisor said that it could not start the server.
    not_started: bool,
    tail: Arc<Mutex<VecDeque<String>>>,
    forwarding: Option<JoinHandle<()>>,
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
            // a supervisor is asked instead: killed, it could end nothing any more
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
        if let Some(cwd) = &spec.cwd {
            command.current_dir(cwd);
        }
        // a group of its own: what npx or uvx start can be ended too, and Ctrl-C does not reach it
        #[cfg(unix)]
        command.process_group(0);
        let mut child = command.spawn()?;
        let group = Group::of(&child);
        let tail = Arc::default();
        let stderr = child.stderr.take();
        let forwarding =
            stderr.map(|stderr| tokio::spawn(forward(id.clone(), stderr, Arc::clone(&tail))));
        match (child.stdin.take(), child.stdout.take()) {
            (Some(stdin), Some(stdout)) => {
                let program = spec.program.to_string_lossy().into_owned();
                let process = Self {
                    child,
                    group,
                    supervised: supervisor.is_some(),
                    not_started: false,
                    tail,
                    forwarding,
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

    /// Says whether the [epitaph](Self::epitaph) showed that the server was not started.
    pub(super) const fn was_not_started(&self) -> bool {
        self.not_started
    }

    /// Says why the output has ended, which `reason` calls it: how the child exited, and what it last
    /// said.
    pub(super) async fn epitaph(&mut self, reason: &str) -> String {
        let ended = tokio::time::timeout(STATUS_WAIT, self.child.wait()).await;
        // what it said last is still on its way; what it has started may keep the pipe open
        if let Some(forwarding) = &mut self.forwarding
            && tokio::time::timeout(STATUS_WAIT, forwarding).await.is_ok()
        {
            self.forwarding = None;
        }
        let program = &self.program;
        let tail = self.tail.lock();
        let how = match ended {
            Ok(Ok(status)) => {
                if let Some(said) = tail.back()
                    && self.supervised
                    && was_not_started(program, status, said)
                {
                    self.not_started = true;
                    return said.clone();
                }
                format!("{program} ended ({status})")
            }
            Ok(Err(error)) => format!("{program} cannot be waited for: {error}"),
            Err(_) => format!("{program} closed its output but runs on"),
        };
        let mut text = format!("{reason}: {how}");
        if !tail.is_empty() {
            text.push_str("; it last said: ");
            text.push_str(&Vec::from_iter(tail.iter().map(String::as_str)).join(" | "));
        }
        text
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
        self.group.kill();
        // cannot fail but by a child that is gone already
        let _ = self.child.kill().await;
    }

    async fn has_ended(&mut self, within: Duration) -> bool {
        let ended = tokio::time::timeout(within, self.child.wait());
        ended.await.is_ok()
    }

    fn terminate(&self) {
        match self.supervised {
            true => self.group.terminate_leader(),
            false => self.group.terminate(),
        }
    }
}

impl Drop for Process {
    /// Kills what the child has left behind in its group. Its number is not given to others while the
    /// group has members, and without any there is nobody to signal.
    fn drop(&mut self) {
        let runs = self.child.id().is_some();
        if runs && self.supervised {
            // it ends all in its own time: nobody waits for it any more
            self.group.terminate_leader();
        } else {
            self.group.kill();
        }
    }
}

async fn forward(id: ServerId, stderr: ChildStderr, tail: Arc<Mutex<VecDeque<String>>>) {
    let mut reader = BufReader::new(stderr);
    let mut line = Vec::new();
    loop {
        line.clear();
        // a line without an end is handed on in pieces
        let mut piece = (&mut reader).take(TAIL_LINE_BYTES);
        match piece.read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end();
        if text.is_empty() {
            continue;
        }
        tracing::debug!(server = %id, "stderr: {text}");
        let mut tail = tail.lock();
        if tail.len() == TAIL_LINES {
            tail.pop_front();
        }
        tail.push_back(text.to_owned());
    }
}

/// The process group of a child.
#[derive(Debug)]
struct Group {
    #[cfg(unix)]
    leader: Option<rustix::process::Pid>,
}

#[cfg(unix)]
impl Group {
    fn of(child: &Child) -> Self {
        let leader = child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(rustix::process::Pid::from_raw);
        Self { leader }
    }

    fn terminate(&self) {
        self.signal(rustix::process::Signal::TERM);
    }

    /// Only for a child that was not waited for yet.
    fn terminate_leader(&self) {
        if let Some(leader) = self.leader {
            // fails only if it has just ended
            let _ = rustix::process::kill_process(leader, rustix::process::Signal::TERM);
        }
    }

    fn kill(&self) {
        self.signal(rustix::process::Signal::KILL);
    }

    fn signal(&self, signal: rustix::process::Signal) {
        if let Some(leader) = self.leader {
            // fails only if nobody of the group is left
            let _ = rustix::process::kill_process_group(leader, signal);
        }
    }
}

#[cfg(not(unix))]
impl Group {
    fn of(_: &Child) -> Self {
        Self {}
    }

    fn terminate(&self) {}

    fn terminate_leader(&self) {}

    fn kill(&self) {}
}
