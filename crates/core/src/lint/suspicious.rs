//! Texts that speak to the model instead of describing the tool, or hide what they say.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::{Candidate, Code, Finding, Notes, across};
use crate::{is_invisible, one_line};

impl Code {
    /// Returns `true` for what servers that deceive do: see [`suspicions`].
    pub const fn is_suspicious(self) -> bool {
        matches!(
            self,
            Self::ModelInstructions | Self::HiddenText | Self::DataUrl | Self::LookAlikeName
        )
    }
}

/// Looks only for what servers that deceive do: texts that instruct the model, that are hidden, or
/// that carry data, and names that look like those of other servers' tools.
///
/// [`check`](super::check) finds them, too.
pub fn suspicions(tools: &[Candidate<'_>]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, tool) in tools.iter().enumerate() {
        check(tool, &mut Notes::new(tool, index, &mut findings));
    }
    across::look_alikes(tools, &mut findings);
    findings
}

pub(super) fn check(tool: &Candidate<'_>, notes: &mut Notes<'_>) {
    let whole = tool.definition.map(|raw| serde_json::from_str(raw.get()));
    let mut whole: Value = whole.and_then(Result::ok).unwrap_or_default();
    if let Some(members) = whole.as_object_mut() {
        // clients show icons, and models do not read them
        members.retain(|name, _| name != "icons" && name != "_meta");
    }
    let subject = tool.subject;
    let stated = [Some(subject.name), subject.description];
    let mut found = [None, None, None];
    let mut note = |text: &str| {
        let [instructs, hidden, data] = &mut found;
        let find = |pattern: &Option<Regex>| Some(cut(pattern.as_ref()?.find(text)?.as_str()));
        *instructs = instructs.take().or_else(|| find(&INSTRUCTIONS));
        *hidden = hidden.take().or_else(|| hidden_in(text));
        *data = data.take().or_else(|| find(&DATA));
    };
    stated.into_iter().flatten().for_each(&mut note);
    each_text(&whole, &mut note);
    let codes = [Code::ModelInstructions, Code::HiddenText, Code::DataUrl];
    for (code, found) in codes.into_iter().zip(found) {
        if let Some(found) = found {
            notes.add(code, found);
        }
    }
}

/// Returns what a name looks like: equal for names that people take for each other.
pub(super) fn look(name: &str) -> String {
    let lower = name.chars().flat_map(char::to_lowercase);
    let shape = |c: char| match c {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c),
        c => c,
    };
    let group = |c: char| LOOK_ALIKES.split(' ').find(|group| group.contains(c));
    let first = |c| group(c).and_then(|group| group.chars().next()).unwrap_or(c);
    let look: String = lower.map(shape).map(first).collect();
    look.replace("rn", "m").replace("vv", "w")
}

/// Characters that look like the first of their group, in lower case: digits, Cyrillic, Greek.
const LOOK_ALIKES: &str = "aаα bьƅ cсϲ dԁ eеё gɡ hһ jјϳ kкκ l1i|іӏιı mм nпո o0оοσօ pрρ qԛ rг sѕ tтτ \
                           uυս vνѵ wԝω xхχ yуүγ zᴢ";

/// Passes on the names of all members, and all strings. The parser has bounded the depth.
fn each_text(value: &Value, note: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => note(text),
        Value::Array(items) => items.iter().for_each(|item| each_text(item, note)),
        Value::Object(members) => members.iter().for_each(|(name, value)| {
            note(name);
            each_text(value, note);
        }),
        _ => {}
    }
}

fn hidden_in(text: &str) -> Option<String> {
    let mut last = ' ';
    text.chars().find_map(|c| {
        let before = std::mem::replace(&mut last, c);
        let is_plain = match c {
            '\n' | '\r' | '\t' | '\u{2028}' | '\u{2029}' => true,
            // scripts and emoji are joined by them
            '\u{200c}' | '\u{200d}' => !before.is_ascii(),
            _ => false,
        };
        (is_invisible(c) && !is_plain).then(|| format!("U+{:04X}", u32::from(c)))
    })
}

fn cut(text: &str) -> String {
    format!("{:?}", one_line(text, MOST_SHOWN))
}

const MOST_SHOWN: usize = 60;

/// What descriptions of tools have no reason to say.
static INSTRUCTIONS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let patterns = [
        r"\b(ignore|disregard|forget|override)\b[^.]{0,20}\b(previous|prior|above|earlier|preceding|system|other)\b[^.]{0,20}\b(instructions?|prompts?|rules|directions|guidelines)\b",
        r"\b(do\s+not|don['’]t|never|must\s+not|without)\s+(tell|mention|inform|notify|alert|reveal)(ing)?\b[^.]{0,30}\b(user|human|person)\b",
        r"\bwithout\s+the\s+(user|human)(['’]s)?\s+(knowledge|knowing|noticing|consent)\b",
        r"<\s*/?\s*(important|system|hidden|admin|critical)\s*>",
        r"\b(before|prior\s+to|instead\s+of)\s+(using|calling|invoking|running)\s+(any|all|every)\s+other\s+tools?\b",
        r"\b(secretly|silently|covertly)\s[^.]{0,20}\b(send|forward|copy|read|include|append|upload|call|pass)\b",
    ];
    Regex::new(&format!("(?i){}", patterns.join("|"))).ok()
});

/// A URL with its content in it, not only an example of how one begins.
static DATA: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)\bdata:[a-z]+/[a-z0-9.+-]+(;[a-z0-9=.-]+)*,[a-z0-9+/=%_-]{16,}").ok()
});
