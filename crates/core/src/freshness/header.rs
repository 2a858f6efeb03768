//! `Cache-Control`, as far as a cache of answers has to know it.

use std::time::Duration;

use super::Freshness;

/// More than this is as good as for ever; RFC 9111 asks for no more.
const LONGEST_SECS: u64 = 1 << 31;

pub(super) fn read(value: &str) -> Freshness {
    let mut said = Freshness::SILENT;
    let mut rest = value;
    while let Some(directive) = next(&mut rest) {
        said = said.strictest(meaning(directive));
    }
    said
}

struct Directive<'a> {
    name: &'a str,
    argument: Option<&'a str>,
}

/// Takes one directive off the front: up to a comma that stands outside quotes.
fn next<'a>(rest: &mut &'a str) -> Option<Directive<'a>> {
    if rest.is_empty() {
        return None;
    }
    let mut quoted = false;
    let mut escaped = false;
    let end = rest.find(|c: char| {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            ',' => return !quoted,
            _ => {}
        }
        false
    });
    let (directive, after) = match end.and_then(|end| rest.split_at_checked(end)) {
        Some((directive, after)) => (directive, after.strip_prefix(',').unwrap_or(after)),
        None => (*rest, ""),
    };
    *rest = after;
    Some(match directive.split_once('=') {
        Some((name, argument)) => Directive {
            name: trim(name),
            argument: Some(unquoted(trim(argument))),
        },
        None => Directive {
            name: trim(directive),
            argument: None,
        },
    })
}

/// Strips the white space HTTP knows.
fn trim(text: &str) -> &str {
    text.trim_matches([' ', '\t'])
}

fn unquoted(text: &str) -> &str {
    text.strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'))
        .unwrap_or(text)
}

fn meaning(Directive { name, argument }: Directive<'_>) -> Freshness {
    let is = |known| name.eq_ignore_ascii_case(known);
    let mut said = Freshness::SILENT;
    // `no-cache` wants to be asked each time, and there is nothing to ask a tool with but the call.
    // Where it or `private` names fields, it is taken for the whole: a result has no such fields.
    if is("no-store") || is("no-cache") {
        said.no_store = true;
    } else if is("private") {
        said.private = true;
    } else if is("max-age") {
        said.max_age = Some(seconds(argument));
    } else if is("s-maxage") {
        said.shared_max_age = Some(seconds(argument));
    } else if is("stale-while-revalidate") {
        said.stale_while_revalidate = Some(seconds(argument));
    } else if is("stale-if-error") {
        said.stale_if_error = Some(seconds(argument));
    } else if is("must-revalidate") {
        said.stale_while_revalidate = Some(Duration::ZERO);
        said.stale_if_error = Some(Duration::ZERO);
    } else if is("proxy-revalidate") {
        // for shared caches: just what a lifetime stated for them forbids, but without one; taken
        // for all, as the stricter reading
        said.stale_while_revalidate = Some(Duration::ZERO);
        said.stale_if_error = Some(Duration::ZERO);
    }
    said
}

/// Reads whole seconds; what is none reads as zero, so that it allows nothing.
fn seconds(argument: Option<&str>) -> Duration {
    let digits =
        argument.filter(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()));
    // only too many digits are left to go wrong
    let secs = digits.map_or(0, |text| text.parse().unwrap_or(LONGEST_SECS));
    Duration::from_secs(secs.min(LONGEST_SECS))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn secs(secs: u64) -> Option<Duration> {
        Some(Duration::from_secs(secs))
    }

    #[test]
    fn each_directive_is_known_however_it_is_written() {
        let said = read("Max-Age=60 ,PRIVATE,\tstale-while-revalidate = \"30\", stale-if-error=5");
        let expected = Freshness {
            private: true,
            max_age: secs(60),
            stale_while_revalidate: secs(30),
            stale_if_error: secs(5),
            ..Freshness::SILENT
        };
        assert_eq!(said, expected);
        for forbids in [
            "no-store",
            "no-cache",
            "max-age=9, No-Store",
            r#"no-cache="set-cookie, x""#,
        ] {
            assert!(read(forbids).no_store, "{forbids}");
        }
        let strict = read("must-revalidate, stale-if-error=60");
        assert_eq!(strict.stale_if_error, secs(0));
        assert_eq!(strict.stale_while_revalidate, secs(0));
    }

    #[test]
    fn what_stands_in_quotes_is_no_directive() {
        let said = read(r#"x="no-store, max-age=1", y="a\", no-store", max-age=7"#);
        assert_eq!(said.max_age, secs(7));
        assert!(!said.no_store);
    }

    #[test]
    fn of_duplicates_the_strictest_counts() {
        assert_eq!(read("max-age=60, max-age=10, max-age=30").max_age, secs(10));
        assert_eq!(read("max-age=60, max-age=soon").max_age, secs(0));
    }

    #[test]
    fn garbage_is_ignored_but_a_lifetime_that_is_none_allows_nothing() {
        for garbage in [
            "",
            ",,, ,",
            "=",
            "\"",
            "public, immutable, x=y",
            "no store",
            "\u{e9}=1",
        ] {
            assert_eq!(read(garbage), Freshness::SILENT, "{garbage}");
        }
        for none in [
            "max-age",
            "max-age=",
            "max-age=-1",
            "max-age=1.5",
            "max-age=+5",
        ] {
            assert_eq!(read(none).max_age, secs(0), "{none}");
        }
        let endless = read("max-age=99999999999999999999999");
        assert_eq!(endless.max_age, secs(LONGEST_SECS));
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in any::<String>(), more in "[ ,=\"\\\\a-z0-9-]{0,40}") {
            let _ = read(&text);
            let _ = read(&more);
        }
    }
}
