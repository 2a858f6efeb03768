//! A process between a client and its stdio server that ends all processes of the server. Linux
//! only.
//!
//! A server often starts further processes (`npx` starts node, a browser server starts a browser),
//! and some leave its process group and session. [`supervise`] is the main function of a small
//! process that becomes their *subreaper*: an orphan becomes its child. It starts the server with
//! its own standard input, output and error, and then only waits.
//!
//! Everything the server started ends
//!
//! | when | how |
//! | --- | --- |
//! | the server has ended | SIGTERM, and SIGKILL after the grace period |
//! | the client sends SIGTERM, SIGINT or SIGHUP | the same |
//! | the client sends a second one | SIGKILL |
//! | the client is gone, by SIGKILL too | the server's input is closed; after the grace period as above |
//!
//! SIGKILL is repeated until nothing is left, at most for [`KILL_TIME`]: a process that hangs in
//! the kernel cannot be waited for.
//!
//! **Limits.** If the supervisor itself is ended by SIGKILL, what left the server's process group
//! stays. A process of another user cannot be signalled.

mod stage;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Command, ExitCode};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    DumpableBehavior, Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process,
    set_dumpable_behavior,
};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};

use crate::client::pipe::{NOT_STARTED, not_started};
use crate::processes::Processes;
use stage::{Seen, Stage};

/// How long SIGKILL is repeated.
pub const KILL_TIME: Duration = Duration::from_secs(5);

/// The exit code if the arguments are wrong.
const USAGE: u8 = 2;

/// Runs a server: the whole life of a supervisor process. Call it from `main`, before anything
/// else, with the arguments that
/// [`UpstreamOptions::supervisor`](crate::client::UpstreamOptions::supervisor) appends: the grace
/// period in milliseconds, the program, and its arguments.
///
/// Returns the server's exit code, or 127 if it cannot be started, and standard error says why. A
/// signal that ended the server ends this process too.
///
/// It waits for every child of this process, and replaces standard input and output by `/dev/null`:
/// a process that calls it does nothing else.
#[must_use]
pub fn supervise(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut args = args.into_iter();
    let grace = args.next().and_then(|text| text.to_str()?.parse().ok());
    let (Some(grace), Some(program)) = (grace, args.next()) else {
        complain("expected the grace period in milliseconds, a program and its arguments");
        return USAGE.into();
    };
    let mut command = Command::new(&program);
    command.args(args);
    match run(&mut command, Duration::from_millis(grace)) {
        Ok(code) => code.into(),
        Err(error) => {
            let program = program.to_string_lossy();
            complain(&not_started(&program, &error));
            NOT_STARTED.into()
        }
    }
}

fn complain(text: &str) {
    // without a reader the message has no recipient
    let _ = writeln!(io::stderr(), "{text}");
}

/// Fails if the server cannot be started.
fn run(command: &mut Command, grace: Duration) -> io::Result<u8> {
    // a name of its own, so that killing the gateway by name does not kill this first
    let _ = rustix::thread::set_name(c"mcp-supervisor");
    let mut signals = Signals::listen()?;
    let null = File::options().read(true).write(true).open("/dev/null")?;
    rustix::process::set_child_subreaper(Some(getpid()))?;
    let child = command.spawn()?;
    let mut family = Family {
        server: i32::try_from(child.id()).ok().and_then(Pid::from_raw),
        status: None,
    };
    // the pipes are the server's alone: either side sees when the other one closes its end
    let _ = rustix::stdio::dup2_stdin(&null);
    let _ = rustix::stdio::dup2_stdout(&null);
    drop(null);

    let mut stage = Stage::Serving;
    let mut client_is_gone = false;
    while family.reap() {
        let seen = Seen {
            server_ended: family.status.is_some(),
            client_is_gone,
            signals: signals.received,
        };
        let before = stage;
        stage = stage.next(seen, now(), grace);
        match stage {
            Stage::Terminating { .. } if before != stage => signal_descendants(Signal::TERM),
            Stage::Killing { .. } => signal_descendants(Signal::KILL),
            Stage::GivenUp => break,
            Stage::Serving | Stage::Asked { .. } | Stage::Terminating { .. } => {}
        }
        client_is_gone |= signals.wait(stage.pause(now()), !client_is_gone);
    }
    Ok(family.end())
}

/// Sends a signal to every process below this one.
fn signal_descendants(signal: Signal) {
    for process in Processes::list().below(getpid()) {
        // it has ended meanwhile, or belongs to another user: either way nothing is left to do
        let _ = kill_process(process, signal);
    }
}

/// The children of this process: the server, and what has lost its parent.
struct Family {
    server: Option<Pid>,
    status: Option<WaitStatus>,
}

impl Family {
    /// Reaps children that have ended. Returns `true` if any are left.
    fn reap(&mut self) -> bool {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((child, status))) => {
                    if Some(child) == self.server {
                        self.status = Some(status);
                    }
                }
                Ok(None) => return true,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return false,
            }
        }
    }

    /// Ends this process by the signal that ended the server, if there was one; else returns its
    /// exit code.
    fn end(&self) -> u8 {
        let Some(status) = self.status else {
            return 1;
        };
        if let Some(signal) = status.terminating_signal() {
            // the server may have left a core; this process has none of its own
            let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
        let code = status.exit_status();
        code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
    }
}

/// The signals this process gets, as bytes in a socket.
struct Signals {
    children: UnixStream,
    ends: UnixStream,
    /// The number of termination signals.
    received: usize,
}

impl Signals {
    fn listen() -> io::Result<Self> {
        let (children, child) = UnixStream::pair()?;
        let (ends, end) = UnixStream::pair()?;
        children.set_nonblocking(true)?;
        ends.set_nonblocking(true)?;
        signal_hook::low_level::pipe::register(SIGCHLD, child)?;
        for signal in [SIGTERM, SIGINT, SIGHUP] {
            signal_hook::low_level::pipe::register(signal, end.try_clone()?)?;
        }
        Ok(Self {
            children,
            ends,
            received: 0,
        })
    }

    /// Waits for a signal, for the end of the client if that is `watched`, or until the pause is
    /// over. Returns `true` if the client is gone.
    fn wait(&mut self, pause: Option<Duration>, watched: bool) -> bool {
        let stderr = rustix::stdio::stderr();
        let mut fds = [
            PollFd::new(&self.children, PollFlags::IN),
            PollFd::new(&self.ends, PollFlags::IN),
            // the loss of the reader is reported without a request
            PollFd::new(&stderr, PollFlags::empty()),
        ];
        let watched_fds = if watched { &mut fds[..] } else { &mut fds[..2] };
        let pause = pause.and_then(|pause| Timespec::try_from(pause).ok());
        // a failure is an interruption: the state is read again
        let _ = poll(watched_fds, pause.as_ref());
        let is_gone = watched && !fds[2].revents().is_empty();
        let mut bytes = [0; 64];
        while matches!(self.children.read(&mut bytes), Ok(1..)) {}
        while let Ok(count @ 1..) = self.ends.read(&mut bytes) {
            self.received = self.received.saturating_add(count);
        }
        is_gone
    }
}

/// Returns the time since some moment in the past.
fn now() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Duration::try_from(now).unwrap_or_default()
}
