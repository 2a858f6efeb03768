//! Keeps the rules of the workspace that no compiler checks.
//!
//! Dependencies point one way: `core` depends on none of ours; the layer crates and the registry
//! on `core` only, so that each layer works alone; the facade on them and on no wire; `mcp` and the
//! gateway on the facade. `tls` depends on none, and is for what connects to others. [`RULES`] has
//! them as data, and `cargo metadata` the edges. Only normal and build dependencies count, because
//! tests may use what they like; `rmcp` is the exception.

mod budgets;
mod sources;
mod texts;

use std::collections::BTreeSet;
use std::io;
use std::process::Command;

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand};

use crate::sources::{root, sources};

const CORE: &str = "callward-core";
const TLS: &str = "callward-tls";

/// The layer crates and the registry depend on `core` alone: a layer that knew another layer could
/// not be used without it.
const ON_CORE_ALONE: [&str; 13] = [
    "callward-approval",
    "callward-auth",
    "callward-audit",
    "callward-breaker",
    "callward-cache",
    "callward-guardrail",
    "callward-limit",
    "callward-loopguard",
    "callward-registry",
    "callward-retry",
    "callward-router",
    "callward-telemetry",
    // Servers to be tried against: of what is tried they know the words alone.
    "callward-chaos",
];

/// The other packages, and the packages of this workspace that each may depend on.
const RULES: [(&str, &[&str]); 10] = [
    (CORE, &[]),
    (TLS, &[]),
    ("callward-auth", &[TLS]),
    ("callward-telemetry", &[TLS]),
    ("callward", ON_CORE_ALONE.split_at(12).0),
    ("callward-mcp", &["callward", TLS]),
    // What the gateway needs of the layers, the facade exports; but credentials are the gateway's.
    (
        "callward-gateway",
        &[
            "callward",
            "callward-auth",
            "callward-chaos",
            "callward-mcp",
            "callward-replay",
            "callward-toolset",
            TLS,
        ],
    ),
    // Replays through the cache layer alone, so that its figures are the cache's.
    ("callward-replay", &["callward-cache"]),
    ("callward-toolset", &["callward-registry"]),
    // For tests alone, so nothing above lists it.
    ("callward-testkit", &["callward-chaos", "callward-router"]),
];

/// Third-party crates that a package must not depend on.
const NEVER: [(&str, &[&str]); 2] = [
    // No runtime and no I/O: a program that defines tools should not have to choose either.
    (
        CORE,
        &[
            "axum",
            "moka",
            "rand",
            "reqwest",
            "tokio",
            "tokio-util",
            "tracing",
        ],
    ),
    // The facade is for agent backends that may never speak MCP.
    ("callward", &["axum", "reqwest"]),
];

/// Who may name `rmcp`, in tests alone. The wire is our own; rmcp is the independent peer there.
/// The testkit may too, which is for tests as a whole.
const RMCP_IN_TESTS_OF: [&str; 2] = ["callward-mcp", "callward-gateway"];

/// Returns `true` if a package may depend on a crate, as one for tests alone or as any.
fn may_name(from: &str, to: &str, dev: bool) -> bool {
    let is_in = |rules: &[(&str, &[&str])]| {
        rules
            .iter()
            .any(|(package, named)| *package == from && named.contains(&to))
    };
    if to == "rmcp" {
        return from == "callward-testkit" || dev && RMCP_IN_TESTS_OF.contains(&from);
    }
    let of_core = to == CORE && ![TLS, "callward-gateway"].contains(&from);
    dev || (!is_in(&NEVER) && (!to.starts_with("callward") || of_core || is_in(&RULES)))
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
    let (mut packages, mut wrong) = (BTreeSet::new(), Vec::new());
    for package in metadata.workspace_packages() {
        let from = package.name.as_str();
        packages.insert(from);
        for dependency in &package.dependencies {
            let dev = dependency.kind == DependencyKind::Development;
            if !may_name(from, &dependency.name, dev) {
                wrong.push(format!("{from} -> {} (dev: {dev})", dependency.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
    // each package has a rule, and no other has
    let ruled = RULES
        .iter()
        .map(|(package, _)| *package)
        .chain(ON_CORE_ALONE);
    assert_eq!(ruled.collect::<BTreeSet<_>>(), packages);
    assert!(!may_name("callward-cache", "callward-retry", false));
    assert!(!may_name(CORE, "tokio", false) && may_name(CORE, "tokio", true));
    Ok(())
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
    let packages = metadata.workspace_packages();
    let named = packages.iter().flat_map(|package| &package.dependencies);
    let named = named.map(|dependency| dependency.name.as_str());
    let named: BTreeSet<_> = named.filter(|name| !name.starts_with("callward")).collect();
    let documented = documented();
    let missing: Vec<_> = named.difference(&documented).collect();
    let stale: Vec<_> = documented.difference(&named).collect();
    assert!(
        missing.is_empty() && stale.is_empty(),
        "docs/dependencies.md: no row for {missing:?}; a row but no manifest for {stale:?}"
    );
    Ok(())
}

#[test]
fn no_layer_asks_the_tool_for_what_the_call_knows_better() -> io::Result<()> {
    // a rule over the arguments may have made another plan of the tool's own
    for layer in [
        "approval",
        "breaker",
        "cache",
        "guardrail",
        "limit",
        "retry",
        "router",
        "telemetry",
    ] {
        let sources = sources(&root().join("crates").join(layer).join("src"), "rs")?;
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

/// The crates that cargo compiles for this machine, tests left out.
fn compiled(selection: &[&str]) -> io::Result<BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--locked",
            "--edges",
            "normal,build",
            "--prefix",
            "none",
        ])
        .args(selection)
        .current_dir(root())
        .output()?;
    assert!(output.status.success(), "{output:?}");
    let lines = String::from_utf8_lossy(&output.stdout);
    let crates = lines.lines().map(|line| line.trim_end_matches(" (*)"));
    Ok(crates.map(ToOwned::to_owned).collect())
}

#[test]
fn no_default_tree_has_the_unmaintained_backoff() -> io::Result<()> {
    let crates = compiled(&["--workspace"])?;
    let found = |name: &&str| {
        crates
            .iter()
            .any(|known| known.starts_with(&format!("{name} v")))
    };
    assert!(found(&"tokio"));
    assert_eq!(["backoff", "instant"].iter().find(|name| found(name)), None);
    Ok(())
}

#[test]
fn the_smallest_facade_compiles_at_most_60_crates() -> io::Result<()> {
    let crates = compiled(&["--package", "callward", "--no-default-features"])?;
    assert!(
        (10..=60).contains(&crates.len()),
        "{}: {crates:?}",
        crates.len()
    );
    Ok(())
}
