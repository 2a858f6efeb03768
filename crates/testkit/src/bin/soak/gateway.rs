//! The gateways: one that serves HTTP, and some that are clients' children; and what a process
//! holds, from `/proc`.

use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

use crate::found::Found;
use crate::pipe::Pipes;
use crate::programs::{NOTES, RELAY};
use crate::server::Server;

/// What fails is the point: nothing is spared.
const PATIENT: &str = "\n[cache]\nfreshness = \"fixed\"\n\n\
    [breaker]\nfailures = 1000000\n\n[breaker.server]\nfailures = 1000000\n\n";
/// How long a gateway may take to end, with all that it started.
const TO_END: Duration = Duration::from_secs(20);

/// How many more descriptors and processes a gateway may hold at the end: idle connections and
/// spare servers.
const MARGIN: u64 = 16;

/// How gateways are started: the program, and a directory of their own.
pub(crate) struct Place {
    pub(crate) program: PathBuf,
    pub(crate) directory: PathBuf,
}

impl Place {
    fn spawn(&self, name: &str, args: &[&str], servers: &str) -> Result<Child, Box<dyn Error>> {
        let state = self.directory.join(name);
        fs::create_dir_all(&state)?;
        let config = state.join("soak.toml");
        fs::write(&config, format!("{servers}{PATIENT}"))?;
        let log = fs::File::create(state.join("log"))?;
        let child = Command::new(&self.program)
            .args(args)
            .arg("--config")
            .arg(&config)
            .env("CALLWARD_STATE_DIR", &state)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .kill_on_drop(true)
            .spawn();
        Ok(child.map_err(|error| {
            let program = self.program.display();
            format!("{program}: {error}; build it, or name it with --gateway")
        })?)
    }

    /// Starts the gateway that serves HTTP; returns the address it listens on.
    pub(crate) async fn serve(&self, servers: &str) -> Result<(Child, String), Box<dyn Error>> {
        let args = ["serve", "--json", "--http", "127.0.0.1:0"];
        let mut child = self.spawn("serve", &args, servers)?;
        let stdout = child.stdout.take().ok_or("no standard output")?;
        let line = BufReader::new(stdout).lines().next_line().await?;
        let listening: Value = serde_json::from_str(&line.ok_or("the gateway has ended")?)?;
        let url = listening["listening"].as_str().unwrap_or_default();
        let address = url.trim_start_matches("http://").trim_end_matches("/mcp");
        Ok((child, address.to_owned()))
    }
}

/// A gateway that is its clients' child.
pub(crate) struct Wrapped {
    pub(crate) name: String,
    pub(crate) servers: String,
    /// What its server writes to.
    pub(crate) behind: Arc<Server>,
    pub(crate) pipes: Arc<Pipes>,
}

impl Wrapped {
    pub(crate) async fn start(&self, place: &Place) -> Result<Child, Box<dyn Error>> {
        let mut child = place.spawn(&self.name, &["run"], &self.servers)?;
        let stdin = child.stdin.take().ok_or("no standard input")?;
        let stdout = child.stdout.take().ok_or("no standard output")?;
        self.pipes.open(stdin, stdout).await?;
        Ok(child)
    }

    /// Ends the gateway, in one of two ways, and starts another.
    pub(crate) async fn restart(
        &self,
        child: &mut Child,
        place: &Place,
        found: &Found,
    ) -> Result<(), Box<dyn Error>> {
        let pid = child.id().ok_or("the gateway has ended")?;
        let mut below = descendants(pid);
        let signal = ["-9", "-15"][fastrand::usize(..2)];
        kill(pid, signal).await;
        if timeout(TO_END, child.wait()).await.is_err() {
            found.violated(format!("kill {signal} did not end `run`"));
            child.kill().await?;
        }
        self.pipes.close();
        let mut rounds = 0;
        while !below.is_empty() && rounds < 100 {
            sleep(Duration::from_millis(50)).await;
            below.retain(|pid| is_ours(*pid));
            rounds += 1;
        }
        if !below.is_empty() {
            found.violated(format!("kill {signal} of `run` left {below:?} behind"));
        }
        // what a gateway that is gone had sent may land later, and its successor cannot know
        self.behind.rest().await;
        *child = self.start(place).await?;
        found.restarts.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// Prints what a gateway holds, at the beginning and at the end; returns `true` if it has let go of
/// the rest.
pub(crate) fn tell(name: &str, start: Usage, end: Usage) -> bool {
    println!("{name:<18}     start        end");
    let rows = ["memory, KiB", "descriptors", "threads", "processes"];
    for ((what, start), end) in rows.iter().zip(start).zip(end) {
        println!("  {what:<16}{start:>8} {end:>10}");
    }
    let is_gone = end[0] == 0;
    !is_gone && end[1] <= start[1] + MARGIN && end[3] <= start[3] + MARGIN
}

/// What a process holds: memory in KiB, descriptors, threads, and processes below it.
pub(crate) type Usage = [u64; 4];

pub(crate) fn usage(pid: u32) -> Usage {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let number = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key));
        let digits = line.and_then(|line| line.split_whitespace().next());
        digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
    };
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count) as u64;
    let below = descendants(pid).len() as u64;
    [number("VmRSS:"), descriptors, number("Threads:"), below]
}

/// Returns the processes below one.
pub(crate) fn descendants(pid: u32) -> Vec<u32> {
    let parents: Vec<(u32, u32)> = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(|pid| Some((pid, parent(pid)?)))
        .collect();
    let mut found = vec![pid];
    let mut at = 0;
    while let Some(above) = found.get(at).copied() {
        let below = parents.iter().filter(|(_, parent)| *parent == above);
        found.extend(below.map(|(pid, _)| *pid));
        at += 1;
    }
    found.remove(0);
    found
}

fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // the name in brackets may have blanks
    let (_, after) = stat.rsplit_once(')')?;
    after.split_whitespace().nth(1)?.parse().ok()
}

/// Returns `true` if a process is a server of ours.
pub(crate) fn is_ours(pid: u32) -> bool {
    fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| {
        let first = line.split(|byte| *byte == 0).nth(1);
        first == Some(NOTES.as_bytes()) || first == Some(RELAY.as_bytes())
    })
}

/// Sends a signal; returns `true` if it was sent.
pub(crate) async fn kill(pid: u32, signal: &str) -> bool {
    let pid = pid.to_string();
    let killed = Command::new("kill").args([signal, &pid]).status().await;
    killed.is_ok_and(|status| status.success())
}
