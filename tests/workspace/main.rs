//! Keeps the rules of the workspace that no compiler checks.
//!
//! Dependencies point one way: `core` depends on none of ours; the layer crates and the registry
//! on `core` only, so that each layer works alone; the facade on them and on no wire; `mcp` and the
//! gateway on the facade. [`RULES`] has them as data, and `cargo metadata` the edges. Only normal
//! and build dependencies count, because tests may use what they like; `rmcp` is the exception.

mod budgets;
mod texts;

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand};

const CORE: &str = "callward-core";
const TESTKIT: &str = "callward-testkit";

const CORE_LAYERS_REGISTRY: &[&str] = &[
    CORE,
    "callward-audit",
    "callward-breaker",
    "callward-cache",
    "callward-limit",
    "callward-loopguard",
    "callward-registry",
    "callward-retry",
    "callward-router",
    "callward-telemetry",
];

/// What one of our packages may depend on.
struct Rule {
    package: &'static str,
    /// The packages of this workspace it may name. All others of ours are refused.
    ours: &'static [&'static str],
    /// Third-party crates it must not name.
    never: &'static [&'static str],
}

impl Rule {
    const fn only(package: &'static str, ours: &'static [&'static str]) -> Self {
        Self {
            package,
            ours,
            never: &[],
        }
    }

    const fn never(self, never: &'static [&'static str]) -> Self {
        Self { never, ..self }
    }
}

const RULES: &[Rule] = &[
    // No runtime and no I/O: a program that defines tools should not have to choose either.
    Rule::only(CORE, &[]).never(&[
        "axum",
        "moka",
        "rand",
        "reqwest",
        "tokio",
        "tokio-util",
        "tracing",
    ]),
    // A layer that knew another layer could not be used without it.
    Rule::only("callward-audit", &[CORE]),
    Rule::only("callward-breaker", &[CORE]),
    Rule::only("callward-cache", &[CORE]),
    Rule::only("callward-limit", &[CORE]),
    Rule::only("callward-loopguard", &[CORE]),
    Rule::only("callward-retry", &[CORE]),
    Rule::only("callward-router", &[CORE]),
    Rule::only("callward-telemetry", &[CORE]),
    Rule::only("callward-registry", &[CORE]),
    // The facade is for agent backends that may never speak MCP.
    Rule::only("callward", CORE_LAYERS_REGISTRY).never(&["axum", "reqwest"]),
    Rule::only("callward-mcp", &[CORE, "callward"]),
    // What the gateway needs of the layers, the facade exports.
    Rule::only(
        "callward-gateway",
        &[
            "callward",
            "callward-chaos",
            "callward-mcp",
            "callward-replay",
        ],
    ),
    // Replays through the cache layer alone, so that its figures are the cache's.
    Rule::only("callward-replay", &[CORE, "callward-cache"]),
    // Servers to be tried against: of what is tried they know the words alone.
    Rule::only("callward-chaos", &[CORE]),
    // For tests alone, so nothing above lists it.
    Rule::only(TESTKIT, &[CORE, "callward-chaos", "callward-router"]),
];

/// Who may name `rmcp`, and how. The wire is our own; rmcp is the independent peer in tests.
const RMCP_IN_TESTS_OF: &[&str] = &["callward-mcp", "callward-gateway"];

/// One line of a `[dependencies]` table.
#[derive(Debug, Clone, Copy)]
struct Edge<'a> {
    from: &'a str,
    to: &'a str,
    dev: bool,
}

/// Every way in which `edges` between `packages` break the rules, as sentences. Empty if none.
fn violations(packages: &[&str], edges: &[Edge<'_>]) -> Vec<String> {
    let mut found = Vec::new();
    for edge in edges {
        let Edge { from, to, dev } = *edge;
        if to == "rmcp" && !(dev && RMCP_IN_TESTS_OF.contains(&from)) {
            found.push(format!(
                "{from} depends on rmcp: only the tests of {} may",
                RMCP_IN_TESTS_OF.join(" and ")
            ));
        }
        let Some(rule) = RULES.iter().find(|rule| rule.package == from) else {
            continue;
        };
        if dev {
            continue;
        }
        if packages.contains(&to) && !rule.ours.contains(&to) {
            let allowed = if rule.ours.is_empty() {
                "none of ours".to_owned()
            } else {
                format!("only {} among ours", rule.ours.join(", "))
            };
            found.push(format!("{from} depends on {to}: it may name {allowed}"));
        }
        if rule.never.contains(&to) {
            found.push(format!("{from} depends on {to}, which it must never name"));
        }
    }
    found
}

/// The names of our packages, and each dependency their manifests list.
fn edges_of(metadata: &Metadata) -> (Vec<&str>, Vec<Edge<'_>>) {
    let packages = metadata.workspace_packages();
    let names = packages
        .iter()
        .map(|package| package.name.as_str())
        .collect();
    let edges = packages
        .iter()
        .flat_map(|package| {
            package.dependencies.iter().map(|dependency| Edge {
                from: package.name.as_str(),
                to: dependency.name.as_str(),
                dev: dependency.kind == DependencyKind::Development,
            })
        })
        .collect();
    (names, edges)
}

/// The workspace as its manifests describe it. Needs no network: dependencies are not resolved.
fn workspace() -> Result<Metadata, cargo_metadata::Error> {
    MetadataCommand::new()
        .manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
        .no_deps()
        .exec()
}

#[test]
fn dependencies_point_one_way() -> Result<(), cargo_metadata::Error> {
    let metadata = workspace()?;
    let (packages, edges) = edges_of(&metadata);
    assert!(
        !edges.is_empty(),
        "the manifests list no dependency at all: nothing was checked"
    );
    let found = violations(&packages, &edges);
    assert!(
        found.is_empty(),
        "the dependency rule is broken:\n  {}",
        found.join("\n  ")
    );
    Ok(())
}

#[test]
fn each_package_has_a_rule_and_no_other_has() -> Result<(), cargo_metadata::Error> {
    let metadata = workspace()?;
    let (packages, _) = edges_of(&metadata);
    let packages: BTreeSet<_> = packages.into_iter().collect();
    let ruled: BTreeSet<_> = RULES.iter().map(|rule| rule.package).collect();
    assert_eq!(ruled, packages);
    Ok(())
}

#[test]
fn a_wrong_edge_is_found_and_a_right_one_is_not() {
    let ours: Vec<_> = RULES.iter().map(|rule| rule.package).collect();
    let cases = [
        // (from, to, a dev-dependency, is a violation)
        (CORE, "serde", false, false),
        (CORE, "tokio", false, true),
        (CORE, "callward-cache", false, true),
        ("callward-cache", CORE, false, false),
        ("callward-cache", "callward-retry", false, true),
        ("callward-retry", TESTKIT, false, true),
        ("callward-retry", TESTKIT, true, false),
        ("callward", "callward-mcp", false, true),
        ("callward", "callward-mcp", true, false),
        ("callward-mcp", "callward-gateway", false, true),
        ("callward-mcp", "rmcp", true, false),
        ("callward-gateway", "callward-cache", false, true),
        ("callward-gateway", "rmcp", false, true),
        ("callward-gateway", "rmcp", true, false),
        ("callward-cache", "rmcp", true, true),
    ];
    for (from, to, dev, wrong) in cases {
        let found = violations(&ours, &[Edge { from, to, dev }]);
        assert_eq!(
            !found.is_empty(),
            wrong,
            "{from} -> {to} (dev: {dev}): {found:?}"
        );
    }
}

/// The crates that have a row of their own in `docs/dependencies.md`, refused ones left out.
fn documented() -> BTreeSet<&'static str> {
    let text = include_str!("../../docs/dependencies.md");
    let used = text.split("## Left out").next().unwrap_or_default();
    used.lines()
        .filter_map(|line| line.strip_prefix("| ")?.split(" | ").next())
        .filter(|cell| *cell != "crate" && !cell.starts_with("---"))
        .collect()
}

#[test]
fn each_direct_dependency_says_what_it_is_for() -> Result<(), cargo_metadata::Error> {
    let metadata = workspace()?;
    let (packages, edges) = edges_of(&metadata);
    let named: BTreeSet<_> = edges
        .iter()
        .map(|edge| edge.to)
        .filter(|name| !packages.contains(name))
        .collect();
    let documented = documented();
    let missing: Vec<_> = named.difference(&documented).collect();
    let stale: Vec<_> = documented.difference(&named).collect();
    assert!(
        missing.is_empty() && stale.is_empty(),
        "docs/dependencies.md: no row for {missing:?}; a row but no manifest for {stale:?}"
    );
    Ok(())
}

/// The layers: each decides by the plan of the call.
const LAYERS: &[&str] = &["breaker", "cache", "limit", "retry", "router", "telemetry"];

/// All files below a directory with this extension, as text; without build directories.
fn sources(directory: &Path, extension: &str) -> io::Result<Vec<(PathBuf, String)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        if path.is_dir() {
            if !name.starts_with(['.', '_']) && name != "target" && name != "node_modules" {
                found.extend(sources(&path, extension)?);
            }
        } else if path.extension().is_some_and(|found| found == extension) {
            let text = std::fs::read_to_string(&path)?;
            found.push((path, text));
        }
    }
    Ok(found)
}

#[test]
fn no_layer_asks_the_tool_for_what_the_call_knows_better() -> io::Result<()> {
    // a rule over the arguments may have made another plan of the tool's own
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for layer in LAYERS {
        let sources = sources(&root.join("crates").join(layer).join("src"), "rs")?;
        assert!(!sources.is_empty(), "{layer}: nothing was read");
        for (path, text) in sources {
            let dense: String = text.split_whitespace().collect();
            for hidden in ["tool().plan()", "tool.plan()", "resolved()"] {
                assert!(!dense.contains(hidden), "{}: {hidden}", path.display());
            }
        }
    }
    Ok(())
}

/// Crates that no package has with its default features.
const UNMAINTAINED: [&str; 2] = ["backoff", "instant"];

/// The crates in the tree of a package for this machine, with its default features.
#[expect(clippy::expect_used, reason = "metadata without a tree fails the test")]
fn tree_of(metadata: &Metadata, package: &str) -> BTreeSet<String> {
    let resolve = metadata.resolve.as_ref().expect("a resolved tree");
    let root = metadata
        .workspace_packages()
        .into_iter()
        .find(|known| known.name.as_str() == package)
        .expect("a package of the workspace");
    let mut due = vec![&root.id];
    let mut seen = BTreeSet::new();
    while let Some(id) = due.pop() {
        if seen.insert(id) {
            due.extend(&resolve[id].dependencies);
        }
    }
    seen.into_iter()
        .map(|id| metadata[id].name.to_string())
        .collect()
}

#[test]
fn no_default_tree_has_the_unmaintained_backoff() -> Result<(), cargo_metadata::Error> {
    let metadata = MetadataCommand::new()
        .manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
        .other_options(["--locked".to_owned()])
        .exec()?;
    for package in metadata.workspace_packages() {
        let tree = tree_of(&metadata, &package.name);
        let found = UNMAINTAINED.iter().find(|name| tree.contains(**name));
        assert_eq!(found, None, "{} with its default features", package.name);
    }
    Ok(())
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
