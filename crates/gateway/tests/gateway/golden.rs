//! What commands print, as files in `tests/golden`: `NAME.md` has commands with their output, and
//! `NAME.in` the files they read. `TRYCMD=overwrite` writes what is printed now; then replace
//! what a case is not about by `...` (lines) or `[..]` (a part of a line). A backslash is shown
//! as `/`.

use std::path::{Path, PathBuf};

use trycmd::TestCases;

use crate::support::{CALLWARD, Gateway};

/// Cases in which a config or a command line finds the binary as `callward`.
pub(crate) fn cases(state: &Path) -> TestCases {
    let folder = Path::new(CALLWARD).parent().unwrap().to_path_buf();
    let rest = std::env::var_os("PATH").unwrap_or_default();
    let path = std::iter::once(folder).chain(std::env::split_paths(&rest));
    let path = std::env::join_paths(path).unwrap();
    let cases = TestCases::new();
    cases
        .env("PATH", path.to_str().unwrap())
        .env("CALLWARD_STATE_DIR", state.to_str().unwrap())
        .env("CALLWARD_LOG", "off");
    cases
}

#[test]
fn commands_print_what_their_pages_show() {
    let state = tempfile::tempdir().unwrap();
    cases(state.path()).case("tests/golden/*.md").run();
}

/// Each page has a gateway of its own, with the config beside it or else the embedded sample; the
/// commands find it by its state directory.
#[tokio::test]
async fn commands_of_a_running_gateway_print_what_their_pages_show() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/running");
    let entries = std::fs::read_dir(folder).unwrap();
    let pages = entries.map(|entry| entry.unwrap().path());
    let pages: Vec<PathBuf> = pages
        .filter(|path| path.extension().is_some_and(|end| end == "md"))
        .collect();
    assert!(!pages.is_empty());
    for page in pages {
        let config = page.with_extension("in").join("gateway.toml");
        let gateway = match std::fs::read_to_string(config) {
            Ok(config) => Gateway::configured(&config.replace("callward", "CALLWARD")).await,
            Err(_) => Gateway::sample().await,
        };
        let cases = cases(gateway.state.path());
        let run = tokio::task::spawn_blocking(move || {
            cases.case(&page).run();
        });
        run.await.unwrap();
    }
}
