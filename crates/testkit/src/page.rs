//! Tables in documents that are generated from the code.
//!
//! Each is between `<!-- table: NAME -->` and `<!-- end -->`. A test compares them; with
//! `CALLWARD_WRITE_PAGES=1` it writes them instead.

use std::fmt::Write as _;
use std::path::Path;

/// Formats a table.
pub fn table<R: AsRef<[String]>>(columns: &[&str], rows: impl IntoIterator<Item = R>) -> String {
    let mut text = format!(
        "| {} |\n|{}\n",
        columns.join(" | "),
        " --- |".repeat(columns.len())
    );
    for row in rows {
        let row = row.as_ref();
        assert_eq!(row.len(), columns.len(), "{row:?}");
        // a pipe would end the cell
        let cells: Vec<_> = row.iter().map(|cell| cell.replace('|', "\\|")).collect();
        // an empty cell is one space
        let line = format!("| {} |", cells.join(" | ")).replace("|  |", "| |");
        writeln!(text, "{}", line.replace("|  |", "| |")).unwrap();
    }
    text
}

/// Checks that the tables of a page with this prefix are exactly these, in any order.
///
/// # Panics
///
/// If a table differs, or is missing on either side.
pub fn holds(page: &Path, prefix: &str, made: &[(&str, String)]) {
    let mut text = std::fs::read_to_string(page).unwrap();
    let mut there: Vec<String> = text
        .split("<!-- table: ")
        .skip(1)
        .map(|rest| rest.split(" -->").next().unwrap().to_owned())
        .filter(|name| name.starts_with(prefix))
        .collect();
    let mut names: Vec<_> = made.iter().map(|(name, _)| (*name).to_owned()).collect();
    names.sort_unstable();
    there.sort_unstable();
    assert_eq!(there, names, "the tables of {}", page.display());
    let write = std::env::var_os("CALLWARD_WRITE_PAGES").is_some();
    for (name, made) in made {
        let begin = format!("<!-- table: {name} -->\n");
        let (before, rest) = text.split_once(&begin).unwrap();
        let (found, after) = rest.split_once("<!-- end -->").unwrap();
        if write {
            text = format!("{before}{begin}\n{made}\n<!-- end -->{after}");
            continue;
        }
        let (found, made): (Vec<_>, Vec<_>) = (
            found.trim().lines().collect(),
            made.trim().lines().collect(),
        );
        let lost: Vec<_> = made.iter().filter(|line| !found.contains(line)).collect();
        let invented: Vec<_> = found.iter().filter(|line| !made.contains(line)).collect();
        assert!(
            found == made,
            "table `{name}` of {}: missing {lost:#?}, not in the code {invented:#?}; with \
             CALLWARD_WRITE_PAGES=1 this test writes the table",
            page.display()
        );
    }
    if write {
        std::fs::write(page, text).unwrap();
    }
}
