//! Cases and invariants of the standard rules.

use proptest::prelude::*;
use serde_json::value::RawValue;

use crate::Field;
use crate::infer::{
    Inference, Inferred, Lexicon, RuleSet, Strength, Subject, VerbKind, Volatility,
};

fn infer(name: &str, description: &str) -> Inferred {
    RuleSet::Standard.infer(&Subject::new(name).with_description(description))
}

fn read_only(inferred: &Inferred) -> Option<(bool, Strength)> {
    let value = inferred.annotations().read_only_hint?;
    Some((value, inferred.evidence(Field::ReadOnly)?.strength()))
}

const STRONG_READ: Option<(bool, Strength)> = Some((true, Strength::Strong));
const STRONG_WRITE: Option<(bool, Strength)> = Some((false, Strength::Strong));
const WEAK_READ: Option<(bool, Strength)> = Some((true, Strength::Weak));
const WEAK_WRITE: Option<(bool, Strength)> = Some((false, Strength::Weak));

#[test]
fn the_leading_verb_decides() {
    for (name, expected) in [
        ("get_user", STRONG_READ),
        ("searchOrders", STRONG_READ),
        ("list-open-tickets", STRONG_READ),
        ("delete_user", STRONG_WRITE),
        ("createInvoice", STRONG_WRITE),
        ("user_get", STRONG_READ),
        ("weather", None),
        ("check_in_guest", None),
        ("getuser", None),
    ] {
        assert_eq!(read_only(&infer(name, "")), expected, "{name}");
    }
}

#[test]
fn a_second_verb_is_doubt() {
    for name in [
        "search_and_delete",
        "get_or_create",
        "list_add_item",
        "log_add",
        "computeStartNode",
        "find_and_update",
    ] {
        assert_eq!(read_only(&infer(name, "")), WEAK_WRITE, "{name}");
    }
    let hints = infer("search_and_delete", "").into_annotations();
    assert_eq!(hints.destructive_hint, Some(true));
}

#[test]
fn a_noun_that_looks_like_a_verb_is_no_doubt() {
    for name in [
        "get_comment",
        "list_merge_queue",
        "read_post",
        "search_log",
        "get_update",
    ] {
        assert_eq!(read_only(&infer(name, "")), STRONG_READ, "{name}");
    }
}

#[test]
fn the_description_can_veto_a_read() {
    let vetoed = infer("get_session", "Creates a session if there is none.");
    assert_eq!(read_only(&vetoed), WEAK_WRITE);
    let joined = infer(
        "fetch_job",
        "Fetches the next job and deletes it from the queue.",
    );
    assert_eq!(joined.annotations().read_only_hint, Some(false));
    assert_eq!(joined.annotations().destructive_hint, Some(true));
    let later = infer("send_mail", "See the list of templates to find one.");
    assert_ne!(read_only(&later).map(|(value, _)| value), Some(true));
}

#[test]
fn a_negation_is_not_a_danger() {
    let safe = infer("read_file", "Reads a file. Does not delete anything.");
    assert_eq!(read_only(&safe), STRONG_READ);
    assert_eq!(safe.annotations().destructive_hint, None);
    let adds = infer("add_note", "Adds a note without overwriting others.");
    assert_eq!(adds.annotations().destructive_hint, Some(false));
    let loses = infer("add_note", "Adds a note, overwriting the old one.");
    assert_eq!(loses.annotations().destructive_hint, Some(true));
}

#[test]
fn the_description_confirms_a_verb_that_does_not_lead() {
    assert_eq!(
        read_only(&infer("jira_get_card", "Gets a card.")),
        STRONG_READ
    );
    assert_eq!(
        read_only(&infer("web_search", "Performs a web search.")),
        STRONG_READ
    );
    assert_eq!(
        read_only(&infer("board_tree", "A tool to show the tree.")),
        WEAK_READ
    );
}

#[test]
fn the_servers_own_name_is_taken_off() {
    let subject = Subject::new("acme_crm_get_lead").with_server("acme-crm");
    assert_eq!(read_only(&RuleSet::Standard.infer(&subject)), STRONG_READ);
    let same = Subject::new("fetch").with_server("fetch");
    assert_eq!(read_only(&RuleSet::Standard.infer(&same)), STRONG_READ);
}

#[test]
fn a_tool_that_runs_what_it_is_told_never_reads_by_its_name() {
    assert_eq!(
        read_only(&infer("query_sql", "Queries the database.")),
        WEAK_WRITE
    );
    assert_ne!(
        read_only(&infer("run_command", "")).map(|(value, _)| value),
        Some(true)
    );
    let schema = r#"{"type":"object","properties":{"sql":{"type":"string"}}}"#;
    let schema = serde_json::from_str::<&RawValue>(schema).unwrap();
    let subject = Subject::new("query_warehouse").with_input_schema(schema);
    assert_eq!(read_only(&RuleSet::Standard.infer(&subject)), WEAK_WRITE);
    assert_eq!(read_only(&infer("query_warehouse", "")), STRONG_READ);
    let with = |name: &str, description: &str, argument: &str| {
        let schema = format!(r#"{{"properties":{{"{argument}":{{}}}}}}"#);
        let schema = serde_json::from_str::<&RawValue>(&schema).unwrap();
        let subject = Subject::new(name)
            .with_description(description)
            .with_input_schema(schema);
        read_only(&RuleSet::Standard.infer(&subject))
    };
    assert_eq!(with("get_rows", "", "sql"), WEAK_WRITE);
    assert_eq!(
        with("get_rows", "Gets rows, read-only.", "sql"),
        STRONG_READ
    );
    assert_eq!(with("explain_plan", "", "sql"), STRONG_READ);
    assert_eq!(with("query_table", "", "query"), WEAK_READ);
    assert_eq!(with("query_table", "Finds rows.", "query"), STRONG_READ);
    assert_eq!(with("search_docs", "", "query"), STRONG_READ);
    // a write by another argument is certain, not only a doubt
    let schema = r#"{"query":{},"action":{"enum":["list","delete"]}}"#;
    let schema = serde_json::from_str::<&RawValue>(schema).unwrap();
    let subject = Subject::new("query_table").with_input_schema(schema);
    assert_eq!(read_only(&RuleSet::Standard.infer(&subject)), WEAK_WRITE);
}

#[test]
fn what_repeats_without_harm() {
    for (name, idempotent, destructive) in [
        ("get_user", Some(true), None),
        ("set_limit", Some(true), Some(true)),
        ("star_repository", Some(true), None),
        ("delete_user", Some(true), Some(true)),
        ("create_user", None, Some(false)),
        ("create_or_update_user", Some(true), Some(true)),
        ("create_and_update_user", None, Some(true)),
        ("add_or_remove_member", None, Some(true)),
        ("start_job", None, None),
        ("send_mail", None, Some(true)),
        ("reboot_node", None, Some(true)),
    ] {
        let hints = infer(name, "").into_annotations();
        assert_eq!(hints.idempotent_hint, idempotent, "{name}");
        assert_eq!(hints.destructive_hint, destructive, "{name}");
    }
}

#[test]
fn what_more_than_adds_is_destructive_though_never_firmly() {
    for name in ["update_user", "send_mail", "move_page", "run_script"] {
        let inferred = infer(name, "");
        assert_eq!(
            inferred.annotations().destructive_hint,
            Some(true),
            "{name}"
        );
        let strength = inferred.evidence(Field::Destructive).map(|e| e.strength());
        assert_eq!(strength, Some(Strength::Weak), "{name}");
    }
}

#[test]
fn the_description_settles_a_name_that_may_be_read_both_ways() {
    for (name, description) in [
        ("deploy_logs_get", "Shows the logs of a deployment."),
        ("get_create_fields", "Gets the fields one may set."),
        ("repo_log", "Shows the commits."),
        ("ticket_update_log", "Shows who changed a ticket."),
        ("weather", "Returns the weather."),
        ("find", "Runs a search of the collection."),
        ("query_table", "Executes a read-only SQL query."),
    ] {
        assert_eq!(read_only(&infer(name, description)), STRONG_READ, "{name}");
    }
    for (name, description) in [
        ("get_or_create", "Gets a session, or makes one."),
        ("update_get", "Fetches the update and installs it."),
        ("tabs", "List, create or close tabs."),
        ("query_table", "Executes a query."),
    ] {
        assert_ne!(read_only(&infer(name, description)), STRONG_READ, "{name}");
        assert_ne!(read_only(&infer(name, description)), WEAK_READ, "{name}");
    }
}

#[test]
fn what_changes_by_itself_or_moves_on_is_read_but_never_kept() {
    let volatility = |name, description| {
        let inferred = infer(name, description);
        let volatility = inferred.volatility().map(|volatile| volatile.volatility);
        (read_only(&inferred), volatility)
    };
    let (clock, cursor) = (Some(Volatility::Clock), Some(Volatility::Cursor));
    for (name, description, expected) in [
        ("get_random_fact", "", (STRONG_READ, clock)),
        ("get_current_time", "", (STRONG_READ, clock)),
        ("get_time", "", (STRONG_READ, clock)),
        ("list_time_entries", "", (STRONG_READ, None)),
        ("get_current_user", "", (STRONG_READ, None)),
        ("get_fact", "Returns a random fact.", (STRONG_READ, clock)),
        ("get_job_status", "", (STRONG_READ, clock)),
        ("get_app_logs", "", (STRONG_READ, clock)),
        ("pods_log", "Gets the log of a pod.", (STRONG_READ, clock)),
        ("get_changelog", "", (STRONG_READ, None)),
        ("wait_for_build", "", (STRONG_READ, clock)),
        (
            "get_next_page",
            "Gets the next page.",
            (STRONG_READ, cursor),
        ),
        (
            "scroll_results",
            "Fetches more rows.",
            (STRONG_READ, cursor),
        ),
        // to look may be to take
        ("get_next_job", "Gets the next job.", (WEAK_READ, cursor)),
        ("get_next_page", "", (WEAK_READ, cursor)),
    ] {
        assert_eq!(volatility(name, description), expected, "{name}");
    }
    let cursor = infer("get_next_page", "Gets the next page.").into_annotations();
    assert_eq!(cursor.idempotent_hint, None);
    // a name that says nothing may yet be declared read-only
    assert!(infer("dice", "").volatility().is_some());
}

#[test]
fn what_hands_over_reads_unless_it_says_where_it_puts_it() {
    let with_schema = |name: &str, description: &str, argument: &str| {
        let schema = format!(r#"{{"properties":{{"{argument}":{{"type":"string"}}}}}}"#);
        let schema = serde_json::from_str::<&RawValue>(&schema).unwrap();
        let subject = Subject::new(name)
            .with_description(description)
            .with_input_schema(schema);
        read_only(&RuleSet::Standard.infer(&subject))
    };
    for (name, description, argument, expected) in [
        ("download_report", "Returns a report.", "id", STRONG_READ),
        ("download_report", "Downloads a report.", "id", WEAK_WRITE),
        ("render_text", "", "outputFormat", STRONG_READ),
        ("take_screenshot", "", "selector", STRONG_READ),
        ("render_text", "", "outputAudio", WEAK_WRITE),
        ("download_report", "", "filePath", WEAK_WRITE),
        (
            "download_report",
            "Saves a report to disk.",
            "id",
            WEAK_WRITE,
        ),
        (
            "get_report",
            "Downloads a report, saved locally.",
            "id",
            WEAK_WRITE,
        ),
        ("audit_page", "Gets a score.", "outputDir", WEAK_WRITE),
        ("read_file", "Reads a file.", "filePath", STRONG_READ),
    ] {
        let verdict = with_schema(name, description, argument);
        assert_eq!(verdict, expected, "{name} {description} {argument}");
    }
}

#[test]
fn some_verbs_read_because_of_what_they_are_about() {
    for (name, expected) in [
        ("resolve_library_id", STRONG_READ),
        ("resolveHostname", STRONG_READ),
        ("resolve_ticket", None),
        ("convert_units", STRONG_READ),
        ("convert_lead", None),
        ("capture_screenshot", STRONG_READ),
        ("capture_payment", None),
        ("generate_uuid", STRONG_READ),
        ("generate_report", None),
    ] {
        assert_eq!(read_only(&infer(name, "")), expected, "{name}");
    }
}

#[test]
fn an_inflected_verb_is_one_where_it_is_no_noun() {
    for (name, expected) in [
        ("deletes_user", STRONG_WRITE),
        ("gets_user", STRONG_READ),
        ("orders_get", STRONG_READ),
        ("getting_users", WEAK_READ),
        ("listing_delete", WEAK_WRITE),
        ("settings", None),
    ] {
        assert_eq!(read_only(&infer(name, "")), expected, "{name}");
    }
}

#[test]
fn a_first_sentence_that_says_nothing_gives_way_to_the_next() {
    let later = "Use this for logs. Lists the logs of a host.";
    assert_eq!(read_only(&infer("host_logs_list", later)), STRONG_READ);
    // but it is not enough where the name says nothing
    let created = "A new channel. Returns its id.";
    assert_ne!(read_only(&infer("channel", created)), STRONG_READ);
    let claimed = "Executes a read-only SQL query.";
    assert_eq!(read_only(&infer("mysql_query", claimed)), STRONG_READ);
}

#[test]
fn words_of_an_operator_count_like_ours() {
    let lexicon = Lexicon::standard()
        .clone()
        .with(VerbKind::Delete, "void")
        .unwrap();
    let inference = Inference::new(RuleSet::Standard).with_lexicon(&lexicon);
    let inferred = inference.infer(&Subject::new("void_invoice"));
    assert_eq!(inferred.annotations().destructive_hint, Some(true));
    let why = inferred.evidence(Field::Destructive).map(|e| e.reason());
    assert_eq!(why, Some("the name leads with `void`".into()));
}

#[test]
fn an_argument_that_chooses_a_write_outweighs_the_name() {
    let infer = |schema: &str| {
        let schema = serde_json::from_str::<&RawValue>(schema).unwrap();
        let subject = Subject::new("get_tabs").with_input_schema(schema);
        read_only(&RuleSet::Standard.infer(&subject))
    };
    let choice = |list: &str| {
        infer(&format!(
            r#"{{"properties":{{"action":{{"type":"string","enum":{list}}},"url":{{}}}}}}"#
        ))
    };
    assert_eq!(choice(r#"["list","close"]"#), WEAK_WRITE);
    assert_eq!(choice(r#"["list","getAll"]"#), STRONG_READ);
    assert_eq!(
        infer(r#"{"properties":{"action":{"type":"string"}}}"#),
        STRONG_READ
    );
}

#[test]
fn the_world_is_open_unless_something_speaks_for_home() {
    let open = |server: &str, name: &str| {
        let subject = Subject::new(name).with_server(server);
        RuleSet::Standard
            .infer(&subject)
            .into_annotations()
            .open_world_hint
    };
    assert_eq!(open("crm", "get_lead"), Some(true));
    assert_eq!(open("files", "read_file"), None);
    assert_eq!(open("git", "get_diff"), None);
    assert_eq!(open("files", "fetch_url_to_file"), Some(true));
}

const WORDS: &[&str] = &[
    "get", "delete", "create", "update", "search", "log", "and", "or", "user", "order", "status",
    "comment", "run", "sql", "remove", "list", "view", "acme", "check", "in",
];

fn styles(words: &[&str]) -> Vec<String> {
    let capital = |word: &str| {
        let (first, rest) = word.split_at(1);
        first.to_ascii_uppercase() + rest
    };
    let pascal: String = words.iter().map(|word| capital(word)).collect();
    let (first, rest) = pascal.split_at(1);
    vec![
        words.join("_"),
        words.join("-"),
        words.join("."),
        words.join(" "),
        words.join("_").to_ascii_uppercase(),
        first.to_ascii_lowercase() + rest,
        pascal,
    ]
}

proptest! {
    #[test]
    fn the_style_of_a_name_makes_no_difference(
        words in prop::collection::vec(prop::sample::select(WORDS), 1..5),
    ) {
        let mut verdicts = styles(&words).into_iter().map(|name| {
            let subject = Subject::new(&name).with_server("acme");
            (RuleSet::Standard.infer(&subject), name)
        });
        let (expected, _) = verdicts.next().unwrap();
        for (verdict, name) in verdicts {
            prop_assert_eq!(&verdict, &expected, "{}", name);
        }
    }

    #[test]
    fn any_text_at_all_is_read_without_harm(name in "\\PC{0,40}", description in "(?s).{0,120}") {
        for rules in [RuleSet::Standard, RuleSet::Neurolink] {
            let subject = Subject::new(&name).with_description(&description);
            prop_assert_eq!(rules.infer(&subject), rules.infer(&subject));
        }
    }

    #[test]
    fn nothing_is_both_read_only_and_destructive(
        words in prop::collection::vec(prop::sample::select(WORDS), 0..5),
        prose in prop::collection::vec(prop::sample::select(WORDS), 0..8),
    ) {
        let hints = infer(&words.join("_"), &prose.join(" ")).into_annotations();
        prop_assert!(hints.read_only_hint != Some(true) || hints.destructive_hint != Some(true));
    }
}
