//! Texts as JSON, cut to the remaining space.

/// The end of a text that was cut.
const MARK: &str = "[cut]";

/// Writes a text with its quotation marks.
pub(super) fn quoted(text: &str) -> String {
    // a text always has a JSON form
    serde_json::to_string(text).unwrap_or_default()
}

/// Appends a text with its quotation marks in at most `space` bytes, of which there are enough for
/// the mark.
pub(super) fn push(out: &mut String, text: &str, space: usize) {
    // no character is shorter in JSON, so a long text is cut before it is written
    let whole = (text.len() + 2 <= space).then(|| quoted(text));
    if let Some(whole) = whole.filter(|whole| whole.len() <= space) {
        return out.push_str(&whole);
    }
    let end = out.len() + space - MARK.len() - 1;
    out.push('"');
    let mut character = [0; 4];
    for c in text.chars() {
        let written = quoted(c.encode_utf8(&mut character));
        // without the quotation marks around it
        let inner = written.get(1..written.len() - 1).unwrap_or_default();
        if out.len() + inner.len() > end {
            break;
        }
        out.push_str(inner);
    }
    out.push_str(MARK);
    out.push('"');
}
