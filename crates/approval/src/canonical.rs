//! Writes a JSON text in one form, whatever form it came in: members by name, no white space.
//!
//! Numbers keep their spelling, so no digit is lost.

use callward_core::FingerprintKey;

/// Returns the canonical form; `None` if the text is not JSON, or if two parsers may read it
/// differently: a person would approve one reading, and the server might act on the other.
pub(crate) fn canonical(text: &[u8]) -> Option<String> {
    // from here on each text is valid, has no member twice, and is at most 128 deep
    FingerprintKey::fixed().json(text)?;
    let mut writer = Writer {
        text,
        at: 0,
        out: String::with_capacity(text.len()),
    };
    writer.value()?;
    Some(writer.out)
}

struct Writer<'a> {
    text: &'a [u8],
    at: usize,
    out: String,
}

impl Writer<'_> {
    /// Skips white space, commas and colons: what is between them is all that counts.
    fn next(&mut self) -> Option<u8> {
        while let Some(byte) = self.text.get(self.at) {
            if !matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b',' | b':') {
                return Some(*byte);
            }
            self.at += 1;
        }
        None
    }

    fn value(&mut self) -> Option<()> {
        match self.next()? {
            b'{' => self.object(),
            b'[' => self.array(),
            b'"' => {
                let string = self.string()?;
                self.push_string(&string)
            }
            _ => {
                let rest = &self.text[self.at..];
                let is_end =
                    |byte: &u8| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r');
                let length = rest.iter().position(is_end).unwrap_or(rest.len());
                self.out
                    .push_str(std::str::from_utf8(&rest[..length]).ok()?);
                self.at += length;
                Some(())
            }
        }
    }

    fn string(&mut self) -> Option<String> {
        let rest = &self.text[self.at..];
        let mut length = 1;
        loop {
            match rest.get(length)? {
                b'"' => break,
                b'\\' => length += 2,
                _ => length += 1,
            }
        }
        self.at += length + 1;
        serde_json::from_slice(rest.get(..=length)?).ok()
    }

    fn push_string(&mut self, string: &str) -> Option<()> {
        self.out.push_str(&serde_json::to_string(string).ok()?);
        Some(())
    }

    fn array(&mut self) -> Option<()> {
        self.at += 1;
        self.out.push('[');
        let start = self.out.len();
        while self.next()? != b']' {
            if self.out.len() > start {
                self.out.push(',');
            }
            self.value()?;
        }
        self.at += 1;
        self.out.push(']');
        Some(())
    }

    fn object(&mut self) -> Option<()> {
        self.at += 1;
        let outer = std::mem::take(&mut self.out);
        let mut members = Vec::new();
        while self.next()? != b'}' {
            let name = self.string()?;
            self.value()?;
            members.push((name, std::mem::take(&mut self.out)));
        }
        self.at += 1;
        members.sort_unstable();
        self.out = outer;
        self.out.push('{');
        for (index, (name, value)) in members.iter().enumerate() {
            if index > 0 {
                self.out.push(',');
            }
            self.push_string(name)?;
            self.out.push(':');
            self.out.push_str(value);
        }
        self.out.push('}');
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    #[test]
    fn one_value_has_one_form_and_numbers_keep_their_digits() {
        for (text, form) in [
            (
                r#" { "b" : [ 1 , 2.50e+1 ] , "a" : { } } "#,
                r#"{"a":{},"b":[1,2.50e+1]}"#,
            ),
            (r#"{"\u0061":"\u0062\n\"\\"}"#, r#"{"a":"b\n\"\\"}"#),
            (
                "[9007199254740993,-0,true,null,[]]",
                "[9007199254740993,-0,true,null,[]]",
            ),
            (r#"{"a":",:[]{}"}"#, r#"{"a":",:[]{}"}"#),
            (" 7 ", "7"),
        ] {
            assert_eq!(canonical(text.as_bytes()).as_deref(), Some(form), "{text}");
            assert_eq!(canonical(form.as_bytes()).as_deref(), Some(form));
        }
        for text in [r#"{"a":1,"a":2}"#, "", "{", "nul", r#""\ud800""#, "{} {}"] {
            assert_eq!(canonical(text.as_bytes()), None, "{text}");
        }
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            ".{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(".{0,3}", inner, 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_canonical_form_is_the_same_value(value in json()) {
            for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
                let form = canonical(text.as_bytes()).unwrap();
                prop_assert_eq!(serde_json::from_str::<Value>(&form).unwrap(), value.clone());
                prop_assert_eq!(form, canonical(value.to_string().as_bytes()).unwrap());
            }
        }
    }
}
