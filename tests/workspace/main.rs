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
use std::process::Command;

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand};

const CORE: &str = "callward-core";

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

/// A package, the packages of this workspace that it may depend on, and third-party crates that it
/// must not.
type Rule = (
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
);

const RULES: &[Rule] = &[
    // No runtime and no I/O: a program that defines tools should not have to choose either.
    (CORE, &[], NO_RUNTIME),
    // A layer that knew another layer could not be used without it.
    ("callward-audit", &[CORE], &[]),
    ("callward-breaker", &[CORE], &[]),
    ("callward-cache", &[CORE], &[]),
    ("callward-limit", &[CORE], &[]),
    ("callward-loopguard", &[CORE], &[]),
    ("callward-retry", &[CORE], &[]),
    ("callward-router", &[CORE], &[]),
    ("callward-telemetry", &[CORE], &[]),
    ("callward-registry", &[CORE], &[]),
    // The facade is for agent backends that may never speak MCP.
    ("callward", CORE_LAYERS_REGISTRY, &["axum", "reqwest"]),
    ("callward-mcp", &[CORE, "callward"], &[]),
    // What the gateway needs of the layers, the facade exports.
    ("callward-gateway", OF_GATEWAY, &[]),
    // Replays through the cache layer alone, so that its figures are the cache's.
    ("callward-replay", &[CORE, "callward-cache"], &[]),
    // Servers to be tried against: of what is tried they know the words alone.
    ("callward-chaos", &[CORE], &[]),
    // For tests alone, so nothing above lists it.
    (
        "callward-testkit",
        &[CORE, "callward-chaos", "callward-router"],
        &[],
    ),
];

const NO_RUNTIME: &[&str] = &[
    "axum",
    "moka",
    "rand",
    "reqwest",
    "tokio",
    "tokio-util",
    "tracing",
];

const OF_GATEWAY: &[&str] = &[
    "callward",
    "callward-chaos",
    "callward-mcp",
    "callward-replay",
];

/// Who may name `rmcp`, in tests alone. The wire is our own; rmcp is the independent peer there.
const RMCP_IN_TESTS_OF: &[&str] = &["callward-mcp", "callward-gateway"];

/// Returns `true` if a package may depend on a crate, as one for tests alone or as any.
fn may_name(from: &str, to: &str, dev: bool) -> bool {
    if to == "rmcp" {
        return dev && RMCP_IN_TESTS_OF.contains(&from);
    }
    let is_ours = RULES.iter().any(|(package, ..)| *package == to);
    RULES.iter().any(|(package, ours, never)| {
        *package == from && (dev || (!never.contains(&to) && (!is_ours || ours.contains(&to))))
    })
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
    let ruled: BTreeSet<_> = RULES.iter().map(|(package, ..)| *package).collect();
    assert_eq!(ruled, packages);
    for (from, to, dev, allowed) in [
        (CORE, "serde", false, true),
        (CORE, "tokio", false, false),
        (CORE, "callward-cache", false, false),
        ("callward-cache", CORE, false, true),
        ("callward-cache", "callward-retry", false, false),
        ("callward-retry", "callward-testkit", false, false),
        ("callward-retry", "callward-testkit", true, true),
        ("callward", "callward-mcp", true, true),
        ("callward-mcp", "rmcp", true, true),
        ("callward-gateway", "rmcp", false, false),
        ("callward-cache", "rmcp", true, false),
    ] {
        assert_eq!(
            may_name(from, to, dev),
            allowed,
            "{from} -> {to} (dev: {dev})"
        );
    }
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
    let ours: BTreeSet<_> = packages
        .iter()
        .map(|package| package.name.as_str())
        .collect();
    let named = packages.iter().flat_map(|package| &package.dependencies);
    let named: BTreeSet<_> = named.map(|dependency| dependency.name.as_str()).collect();
    let named: BTreeSet<_> = named.difference(&ours).copied().collect();
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

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
