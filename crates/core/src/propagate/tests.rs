use proptest::prelude::*;

use super::*;

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

fn parse(parent: &str) -> Result<TraceContext, InvalidValue> {
    TraceContext::parse(parent, None)
}

fn state(text: &str) -> Option<String> {
    let context = TraceContext::parse(PARENT, Some(text)).unwrap();
    context.state().map(str::to_owned)
}

#[test]
fn a_traceparent_is_read_and_written_back_with_known_flags() {
    let context = parse(PARENT).unwrap();
    let trace_id = 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736;
    let made = TraceContext::new(trace_id, 0x00f0_67aa_0ba9_02b7, TraceContext::SAMPLED);
    assert_eq!(made, Some(context));
    assert_eq!(TraceContext::new(0, 1, TraceContext::SAMPLED), None);
    assert_eq!(TraceContext::new(1, 0, TraceContext::SAMPLED), None);
    let later = PARENT.replacen("00", "cc", 1);
    for (given, flags, unsampled) in [
        (PARENT.to_owned(), "-01", "-00"),
        (PARENT.replace("-01", "-ff"), "-03", "-02"),
        // of a later version, what is known is read
        (PARENT.replacen("00", "01", 1), "-01", "-00"),
        (format!("{later}-what-comes-later"), "-01", "-00"),
    ] {
        let context = parse(&given).unwrap();
        assert!(context.is_sampled());
        assert_eq!(context.to_string(), PARENT.replace("-01", flags), "{given}");
        let shown = context.unsampled().to_string();
        assert_eq!(shown, PARENT.replace("-01", unsampled), "{given}");
    }
}

#[test]
fn each_rule_of_the_format_is_kept() {
    for (from, to, word) in [
        (PARENT, "", "short"),
        ("-01", "-0", "short"),
        ("-01", "-01-", "long"),
        ("00-4", "ff-4", "ff"),
        ("4bf92f", "4BF92F", "lower"),
        (&PARENT[3..35], &"0".repeat(32), "zeros"),
        ("00f067aa0ba902b7", "0000000000000000", "zeros"),
        ("-", "_", "form"),
        ("6-00f", "-600f", "form"),
        ("00-4", "0x-4", "form"),
        ("00-4", " 00-4", "form"),
        ("4bf92f", "+bf92f", "form"),
    ] {
        let text = PARENT.replace(from, to);
        let fault = parse(&text).expect_err(&text).to_string();
        assert!(fault.contains(word), "{text}: {fault}");
    }
    let behind = format!("{}x", PARENT.replacen("00", "01", 1));
    assert!(parse(&behind).unwrap_err().to_string().contains("behind"));
    // the error of a long text is short
    let long = parse(&"é".repeat(10_000)).unwrap_err().to_string();
    assert!(long.len() < 300, "{long}");
}

#[test]
fn a_tracestate_is_passed_on_or_left_out_as_a_whole() {
    for good in ["a=1", "a=1,b@c=2", "0-_*/=x y", "congo=t61rcWkgMzE"] {
        assert_eq!(state(good).as_deref(), Some(good));
    }
    assert_eq!(state(" a=1 ,, b=2\t").as_deref(), Some("a=1,b=2"));
    for bad in [
        "", "a", "A=1", "a=", "=1", "a=1,a=2", "a=b=c", "a=é", "a=1,b", " , ",
    ] {
        assert_eq!(state(bad), None, "{bad}");
    }
    let many = |count: u32| {
        (0..count)
            .map(|n| format!("k{n}=v"))
            .collect::<Vec<_>>()
            .join(",")
    };
    assert_eq!(state(&many(32)), Some(many(32)));
    assert_eq!(state(&many(33)), None);
    // a long one loses long members first, and old ones next
    let long = format!("long={}", "x".repeat(200));
    let short = |name: &str| format!("{name}={}", "y".repeat(110));
    let full = [short("a"), long, short("b"), short("c"), short("d")].join(",");
    let kept = [short("a"), short("b"), short("c"), short("d")].join(",");
    assert_eq!(state(&full), Some(kept.clone()));
    let more = [kept.clone(), short("e")].join(",");
    assert_eq!(state(&more), Some(kept));
}

#[test]
fn baggage_passes_by_its_key_alone() {
    let filter = BaggageFilter::new(["tenant", "region"]).unwrap();
    let pass = |text: &str| filter.pass(text).map(|passed| passed.as_str().to_owned());
    let passed = "tenant=acme;a;b = c,region=eu%20west";
    let all = "user=ada, tenant=acme;a;b = c ,Tenant=x,region=eu%20west";
    assert_eq!(pass(all).as_deref(), Some(passed));
    assert_eq!(pass(" tenant \t =,").as_deref(), Some("tenant \t ="));
    for nothing in ",user=ada,tenant,tenant=a b,tenant=a;=,tenant=\",tenant=é".split(',') {
        assert_eq!(pass(nothing), None, "{nothing}");
    }
    assert_eq!(BaggageFilter::default().pass("tenant=acme"), None);
    for key in ["", "a b", "a=b", "é"] {
        assert!(BaggageFilter::new([key]).is_err(), "{key}");
    }
    let filter = BaggageFilter::new(["k"]).unwrap();
    let pass = |text: &str| filter.pass(text).map(|passed| passed.as_str().to_owned());
    assert_eq!(pass(&format!("k={}", "x".repeat(8191))), None);
    let members = |count| vec!["k=1"; count].join(",");
    assert_eq!(pass(&members(1000)), Some(members(64)));
    let long = format!("k={},k=2", "x".repeat(4096));
    assert_eq!(pass(&long).as_deref(), Some("k=2"));
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(
        trace in 1_u128.., parent in 1_u64.., flags in 0_u8..4,
        place in 0_usize..55, wrong in "[^0-9a-f-]",
    ) {
        let context = TraceContext::new(trace, parent, flags).unwrap();
        let mut text = context.to_string();
        prop_assert_eq!(parse(&text), Ok(context));
        text.replace_range(place..=place, &wrong);
        prop_assert!(parse(&text).is_err(), "{text}");
    }

    #[test]
    fn no_text_breaks_the_reading(parent in any::<String>(), text in any::<String>()) {
        let read = TraceContext::parse(&parent, Some(&text));
        if let Ok(read) = read {
            prop_assert_eq!(read.to_string().len(), 55);
        }
        let read = TraceContext::parse(PARENT, Some(&text)).unwrap();
        prop_assert!(read.state().is_none_or(|state| state.len() <= 512));
    }

    #[test]
    fn what_passes_of_baggage_is_listed_and_short(text in "[a-c=;, %\"é]{0,200}") {
        let filter = BaggageFilter::new(["a"]).unwrap();
        if let Some(passed) = filter.pass(&text) {
            let passed = passed.as_str();
            prop_assert!(passed.is_ascii() && passed.len() <= text.len());
            for member in passed.split(',') {
                let key = member.split_once('=').map(|(key, _)| key.trim_end_matches([' ', '\t']));
                prop_assert_eq!(key, Some("a"), "{}", passed);
            }
        }
    }
}
