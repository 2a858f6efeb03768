//! What it was measured on.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

pub(crate) fn describe() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    found.insert("cores".to_owned(), cores.to_string());
    let cpu = first("/proc/cpuinfo", "model name");
    found.insert(
        "cpu".to_owned(),
        cpu.unwrap_or_else(|| "unknown".to_owned()),
    );
    if let Some(memory) = first("/proc/meminfo", "MemTotal") {
        let kib = memory.trim_end_matches("kB").trim().parse::<f64>();
        let gib = kib.unwrap_or_default() / (1024.0 * 1024.0);
        found.insert("memory".to_owned(), format!("{gib:.0} GiB"));
    }
    for (what, program, words) in [
        ("system", "uname", &["-sr"][..]),
        ("rustc", "rustc", &["--version"]),
        ("node", "node", &["--version"]),
        ("date", "date", &["-u", "+%Y-%m-%d"]),
        ("load average", "cut", &["-d ", "-f1-3", "/proc/loadavg"]),
    ] {
        let output = Command::new(program).args(words).output();
        if let Ok(output) = output {
            let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            found.insert(what.to_owned(), text);
        }
    }
    found
}

fn first(file: &str, name: &str) -> Option<String> {
    field(&fs::read_to_string(file).ok()?, name)
}

/// The value behind a name and a colon.
fn field(text: &str, name: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    let (_, value) = line.split_once(':')?;
    Some(value.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_what_stands_behind_its_colon() {
        let text = "processor\t: 0\nmodel name\t: A (R) 2.0: fast\nmodel name\t: B\n";
        assert_eq!(
            field(text, "model name").as_deref(),
            Some("A (R) 2.0: fast")
        );
        assert_eq!(field(text, "flags"), None);
    }
}
