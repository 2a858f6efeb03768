//! What the arguments give away. The schema is read as text: it is searched for a few words, and
//! parsing it would cost more than all the rest of inference.

use memchr::memmem;
use serde_json::value::RawValue;

use crate::infer::lexicon::words::CHOICES;
use crate::infer::lexicon::{self, Lexicon, Verb, VerbKind};
use crate::infer::words;

/// The choices stand so close behind the name of the argument, in bytes.
const REACH: usize = 400;

/// Says whether the schema has a string that is exactly this word: the name of an argument, as a
/// rule.
pub(super) fn has(schema: Option<&RawValue>, word: &str) -> bool {
    schema.is_some_and(|schema| position(schema.get(), word).is_some())
}

/// Finds a choice that writes: `"action": {"enum": ["list", "close"]}`.
pub(super) fn choice<'l>(schema: Option<&RawValue>, lexicon: &'l Lexicon) -> Option<&'l Verb> {
    let text = schema?.get();
    CHOICES.iter().find_map(|name| {
        let after = position(text, name)?;
        let near = text.as_bytes().get(after..)?;
        let near = near.get(..REACH.min(near.len()))?;
        let from = memmem::find(near, b"\"enum\"")? + 6;
        let list = near.get(from..)?;
        let end = memchr::memchr(b']', list).unwrap_or(list.len());
        list.get(..end)?
            .split(|byte| !byte.is_ascii_alphabetic())
            .filter_map(|word| lexicon.find(std::str::from_utf8(word).ok()?))
            .find(|verb| verb.kind != VerbKind::Read)
    })
}

/// Finds an argument that begins with `output` and does not say what the output looks like:
/// `output_audio`, not `outputFormat`.
pub(super) fn output(schema: Option<&RawValue>) -> Option<&'static str> {
    let text = schema?.get();
    memmem::find_iter(text.as_bytes(), b"\"output")
        .filter_map(|at| {
            let rest = text.get(at + 1..)?;
            rest.split_once('"')
                .filter(|(_, after)| after.trim_start().starts_with(':'))
        })
        .any(|(name, _)| {
            !words::split(name)
                .iter()
                .any(|word| lexicon::is_shape(word))
        })
        .then_some("output")
}

/// Returns where the quoted word ends.
fn position(text: &str, word: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    memmem::find_iter(bytes, word).find_map(|at| {
        let end = at + word.len();
        let quoted = bytes.get(at.checked_sub(1)?) == Some(&b'"') && bytes.get(end) == Some(&b'"');
        quoted.then_some(end)
    })
}
