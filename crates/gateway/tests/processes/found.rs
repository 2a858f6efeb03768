//! Finds the processes of one test.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use callward_mcp::client::{CommandSpec, EraChoice, Target, Upstream, UpstreamOptions};
use tempfile::NamedTempFile;
use tokio::process::Command;

use crate::scripted::Script;
use crate::server::CALLWARD;

/// The variable that all processes of a test inherit.
pub(crate) const MARK: &str = "CALLWARD_TEST_MARK";

/// Processes that are found by what `MARK` says in them.
#[derive(Debug)]
pub(crate) struct Marked(String);

impl Marked {
    pub(crate) fn new(name: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        Self(format!("{name}-{}-{next}", std::process::id()))
    }

    pub(crate) fn name(&self) -> &str {
        &self.0
    }

    /// Starts a server whose processes are marked, behind a supervisor.
    pub(crate) fn upstream(
        &self,
        script: &Script<'_>,
        set: impl FnOnce(&mut UpstreamOptions),
    ) -> Upstream {
        let [program, args @ ..] = script.command();
        let mut command = CommandSpec::new(program).with_args(args);
        command.env.insert(MARK.into(), self.name().into());
        let mut options = UpstreamOptions::default();
        options.era = EraChoice::Legacy;
        options.shutdown_grace = Duration::from_millis(200);
        options.supervisor = vec![CALLWARD.into(), "__supervise".into()];
        set(&mut options);
        Upstream::start("s".parse().unwrap(), Target::Command(command), options)
    }

    /// Writes a config with one server, whose processes are marked.
    pub(crate) fn config(&self, script: &Script<'_>) -> NamedTempFile {
        let file = NamedTempFile::with_suffix(".toml").unwrap();
        let server = script.server("s");
        let text = format!(
            "{server}era = \"legacy\"\nenv = {{ {MARK} = \"{}\" }}\n",
            self.name()
        );
        std::fs::write(file.path(), text).unwrap();
        file
    }

    /// Returns how many processes there are; one that has ended and is not waited for has no
    /// environment any more.
    pub(crate) fn count(&self) -> usize {
        self.processes().len()
    }

    /// Returns the process whose command line has this word.
    pub(crate) fn one_with(&self, word: &str) -> u32 {
        let found: Vec<_> = self
            .processes()
            .into_iter()
            .filter(|process| has(*process, "cmdline", word))
            .collect();
        let [process] = found[..] else {
            panic!("one process with {word}: {found:?}");
        };
        process
    }

    fn processes(&self) -> Vec<u32> {
        let mark = format!("{MARK}={}\0", self.0);
        let all = std::fs::read_dir("/proc").unwrap();
        all.flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter(|process| has(*process, "environ", &mark))
            .collect()
    }
}

/// Returns `true` if a file of a process has this text; one that has ended has none.
fn has(process: u32, file: &str, text: &str) -> bool {
    let bytes = std::fs::read(format!("/proc/{process}/{file}")).unwrap_or_default();
    bytes
        .windows(text.len())
        .any(|window| window == text.as_bytes())
}

/// Returns the process group of a process.
pub(crate) fn group(process: u32) -> u32 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let (_, rest) = stat.rsplit_once(')').unwrap();
    rest.split_ascii_whitespace()
        .nth(2)
        .unwrap()
        .parse()
        .unwrap()
}

pub(crate) async fn signal(signal: &str, process: u32) {
    let command = format!("kill -{signal} {process}");
    let ended = Command::new("/bin/sh").args(["-c", &command]).status();
    assert!(ended.await.unwrap().success(), "{command}");
}

/// Waits for a condition, for half a minute at most.
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(30), waiting).await;
    assert!(waited.is_ok(), "not within 30 s: {what}");
}
