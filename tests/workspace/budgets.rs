//! Each crate has a budget of code lines. Raising one needs an ADR.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use crate::sources::{root, sources};

/// The most lines of code, without comments, blank lines and tests. A budget falls with its crate.
const BUDGETS: [(&str, usize); 21] = [
    ("approval", 2961),
    ("audit", 1577),
    ("auth", 2881),
    ("breaker", 1238),
    ("cache", 4725),
    ("chaos", 702),
    ("core", 10_795),
    ("facade", 4184),
    ("gateway", 16_347),
    ("guardrail", 813),
    ("limit", 1596),
    ("loopguard", 390),
    ("mcp", 12_292),
    ("registry", 2827),
    ("replay", 2248),
    ("retry", 1608),
    ("router", 2408),
    ("telemetry", 2049),
    ("testkit", 2445),
    ("tls", 27),
    ("toolset", 694),
];
/// The most lines of tests.
const TESTS: usize = 64_800;

/// What supports tests only, though it is not a test itself.
const SUPPORT: [&str; 4] = [
    "testkit/src/hostile",
    "testkit/src/bin/conformance",
    "testkit/src/bin/rmcp_client",
    "testkit/src/bin/soak",
];

fn is_test(path: &Path) -> bool {
    let of_tests = |part: &str| ["tests", "tests.rs", "interleavings.rs"].contains(&part);
    path.iter().filter_map(|part| part.to_str()).any(of_tests)
}

/// Counts the lines of code and the lines of test modules in a source file.
fn count(text: &str) -> (usize, usize) {
    let (mut code, mut tests) = (0, 0);
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let bare = line.trim_start();
        let is_test =
            bare.starts_with("#[cfg(") && (bare.contains("test") || bare.contains("shuttle"));
        if !is_test {
            code += usize::from(!bare.is_empty() && !bare.starts_with("//"));
            continue;
        }
        let end = format!("{}}}", &line[..line.len() - bare.len()]);
        let mut in_body = false;
        for line in lines.by_ref() {
            tests += 1;
            in_body |= line.ends_with('{');
            if line.starts_with(&end) || (!in_body && line.ends_with(';')) {
                break;
            }
        }
    }
    (code, tests)
}

#[test]
fn each_crate_keeps_its_budget() -> io::Result<()> {
    let (mut found, mut tests) = (BTreeMap::new(), 0);
    for (path, text) in sources(root(), "rs")? {
        let path = path.strip_prefix(root()).unwrap_or(&path);
        let mut parts = path.iter().filter_map(|part| part.to_str());
        let name = match parts.next() {
            Some("crates") => parts.next().unwrap_or_default(),
            Some("src") => "facade",
            Some("tests") => "tests",
            _ => continue,
        };
        let is_support = SUPPORT
            .iter()
            .any(|part| path.to_string_lossy().contains(part));
        if is_test(path) || is_support {
            tests += text.lines().count();
        } else if !path.iter().any(|part| part == "benches") {
            let (code, of_tests) = count(&text);
            *found.entry(name.to_owned()).or_insert(0) += code;
            tests += of_tests;
        }
    }
    let over: Vec<_> = found
        .iter()
        .filter(|(name, code)| BUDGETS.iter().all(|(of, most)| of != name || *code > most))
        .collect();
    assert!(over.is_empty(), "over budget, or without one: {over:?}");
    assert!(tests <= TESTS, "{tests} lines of tests");
    Ok(())
}
