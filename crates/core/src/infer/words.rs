//! Splitting a name of any style into its words.

use smallvec::SmallVec;

/// The words of a name. Names of tools rarely have more than eight.
pub(crate) type Words<'a> = SmallVec<[&'a str; 8]>;

/// Splits at everything that is neither letter nor digit, between letters and digits, between a
/// lower-case and an upper-case letter, and before the last capital of a run that goes on in lower
/// case: `getHTTPServer2` is get, HTTP, Server, 2. The words keep their case.
pub(crate) fn split(name: &str) -> Words<'_> {
    let mut words = Words::new();
    let mut start = 0;
    let mut before = Class::Other;
    let mut chars = name.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let class = Class::of(c);
        let next = chars.peek().map_or(Class::Other, |&(_, c)| Class::of(c));
        let starts = match (before, class) {
            (Class::Upper, Class::Upper) => next == Class::Lower,
            (Class::Upper, Class::Lower) => false,
            (before, class) => before != class,
        };
        if starts {
            push(&mut words, name, start, at);
            start = at;
        }
        if class == Class::Other {
            start = at + c.len_utf8();
        }
        before = class;
    }
    push(&mut words, name, start, name.len());
    words
}

fn push<'a>(words: &mut Words<'a>, name: &'a str, start: usize, end: usize) {
    if let Some(word) = name.get(start..end).filter(|word| !word.is_empty()) {
        words.push(word);
    }
}

/// Returns `true` if two words are the same but for ASCII case.
pub(crate) fn same(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b)
}

/// Returns the letters and digits of a name only, in lower case.
pub(crate) fn plain(name: &str) -> String {
    let letters = name.chars().filter(|c| c.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

/// Writes a word in lower case and, roughly, in the singular: words that
/// are compared are treated alike, so it only matters that they become equal.
pub(crate) fn singular(word: &str) -> String {
    let mut word = word.to_lowercase();
    if let Some(stem) = word.strip_suffix("ies").filter(|stem| stem.len() > 1) {
        return format!("{stem}y");
    }
    for ending in ["sses", "xes", "ches", "shes"] {
        if word.ends_with(ending) {
            word.truncate(word.len() - 2);
            return word;
        }
    }
    let many = word.len() > 3
        && word.ends_with('s')
        && !["ss", "us", "is"].iter().any(|end| word.ends_with(end));
    if many {
        word.pop();
    }
    word
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Lower,
    Upper,
    Digit,
    Other,
}

impl Class {
    fn of(c: char) -> Self {
        match c {
            'a'..='z' => Self::Lower,
            'A'..='Z' => Self::Upper,
            '0'..='9' => Self::Digit,
            _ if c.is_ascii() => Self::Other,
            _ if c.is_uppercase() => Self::Upper,
            _ if c.is_alphabetic() => Self::Lower,
            _ if c.is_numeric() => Self::Digit,
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_style_is_split() {
        for (name, expected) in [
            ("delete_user", &["delete", "user"][..]),
            ("deleteUser", &["delete", "User"]),
            ("DeleteUser", &["Delete", "User"]),
            ("DELETE_USER", &["DELETE", "USER"]),
            ("user.delete", &["user", "delete"]),
            ("repos/get: one", &["repos", "get", "one"]),
            ("DELETEUser", &["DELETE", "User"]),
            ("getHTTPServer2", &["get", "HTTP", "Server", "2"]),
            ("get2FA", &["get", "2", "FA"]),
            ("s3PutObject", &["s", "3", "Put", "Object"]),
            ("__get__", &["get"]),
            ("überGet", &["über", "Get"]),
            ("naïve-get", &["naïve", "get"]),
            ("", &[]),
            ("-_.", &[]),
        ] {
            assert_eq!(&split(name)[..], expected, "{name}");
        }
    }

    proptest! {
        #[test]
        fn no_letter_or_digit_is_lost(name in "\\PC{0,24}") {
            let kept: String = split(&name).concat();
            let expected: String = name.chars().filter(|&c| Class::of(c) != Class::Other).collect();
            prop_assert_eq!(kept, expected);
        }
    }
}
