//! The page: what is between its markers is written from figures, the rest by people.

mod changed;
mod plot;
mod rows;
mod sections;
mod table;

use std::fs;
use std::path::Path;

use crate::Outcome;
use crate::figures::Figures;

const BEGIN: &str = "<!-- begin generated -->\n";
const END: &str = "<!-- end generated -->\n";

/// Writes the part of the page between its markers, and the pictures, from what the folder holds:
/// `peers.json`, and a report for each bench whose figures are shown.
pub(crate) fn write(page: &Path, folder: &Path) -> Outcome<()> {
    let file = folder.join("peers.json");
    let text = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    let figures: Figures = serde_json::from_str(&text)?;
    let folder_name = folder
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    let mut generated = table::render(&figures);
    for (name, svg) in plot::all(&figures) {
        fs::write(folder.join(name), svg)?;
        generated.push_str(&format!("\n![{}]({folder_name}/{name})\n", plot::alt(name)));
    }
    generated.push_str(&sections::read(folder, folder_name)?);
    let old = fs::read_to_string(page).map_err(|error| format!("{}: {error}", page.display()))?;
    fs::write(page, between(&old, &generated)?)?;
    Ok(())
}

/// The page with other words between its markers.
fn between(page: &str, words: &str) -> Outcome<String> {
    let missing = || format!("the page lacks `{}` or `{}`", BEGIN.trim(), END.trim());
    let (head, rest) = page.split_once(BEGIN).ok_or_else(missing)?;
    let (_, tail) = rest.split_once(END).ok_or_else(missing)?;
    Ok(format!("{head}{BEGIN}\n{words}\n{END}{tail}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_text_between_the_markers_is_replaced() {
        let page = format!("head\n{BEGIN}old\n{END}tail\n");
        let once = between(&page, "new\n").unwrap();
        assert_eq!(once, format!("head\n{BEGIN}\nnew\n\n{END}tail\n"));
        assert_eq!(between(&once, "new\n").unwrap(), once);
        assert!(between("no markers", "new").is_err());
    }
}
