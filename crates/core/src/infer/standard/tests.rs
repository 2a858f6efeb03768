//! Cases and invariants of the standard rules.

use proptest::prelude::*;
use serde_json::value::RawValue;

use crate::Field;
use crate::infer::{Inferred, RuleSet, Strength, Subject};

fn described<'a>(name: &'a str, description: &'a str) -> Subject<'a> {
    Subject {
        description: Some(description),
        ..Subject::new(name)
    }
}

/// What is concluded, in words. `reads` and `writes` are firm, with `?` they are not, and `silent`
/// is neither. `loses` and `adds` are the destructive hint, with `!` if it is firm; `repeats` and
/// `once` the idempotent one; `open` and `closed` the world. Then come the words of volatility.
fn words(inferred: &Inferred) -> Vec<&'static str> {
    let hints = &inferred.annotations;
    let firm =
        |field| inferred.evidence_for(field).map(|found| found.strength) == Some(Strength::Strong);
    let choose = |hint: Option<bool>, [yes, no]: [&'static str; 2]| {
        hint.map(|hint| if hint { yes } else { no })
    };
    let sure = |field, [strong, weak]: [&'static str; 2]| if firm(field) { strong } else { weak };
    let reads = choose(
        hints.read_only_hint,
        [
            sure(Field::ReadOnly, ["reads", "reads?"]),
            sure(Field::ReadOnly, ["writes", "writes?"]),
        ],
    );
    let loses = sure(Field::Destructive, ["loses!", "loses"]);
    let mut words = vec![reads.unwrap_or("silent")];
    words.extend(choose(hints.destructive_hint, [loses, "adds"]));
    words.extend(choose(hints.idempotent_hint, ["repeats", "once"]));
    words.extend(choose(hints.open_world_hint, ["open", "closed"]));
    let volatile = inferred.volatile.as_ref();
    words.extend(volatile.map(|volatile| volatile.volatility.as_str()));
    words
}

/// The name, after its server if there is one; the description; the schema, or the name of an
/// argument; words that are concluded. One with a `-` is not, and neither are its forms.
const CASES: &str = r#"
# the leading verb decides
get_user | | | reads repeats -loses -adds
searchOrders list-open-tickets user_get | | | reads
delete_user | | | writes loses! repeats
createInvoice | | | writes
weather check_in_guest getuser | | | silent
# a second verb is doubt
search_and_delete | | | writes? loses
get_or_create list_add_item log_add computeStartNode find_and_update | | | writes?
# a noun that looks like a verb does not cast doubt
get_comment list_merge_queue read_post search_log get_update | | | reads
# the description can veto a read
get_session | Creates a session if there is none. | | writes?
fetch_job | Fetches the next job and deletes it from the queue. | | writes? loses
send_mail | See the list of templates to find one. | | -reads
# a negation is not a danger
read_file | Reads a file. Does not delete anything. | | reads -loses -adds
add_note | Adds a note without overwriting others. | | adds
add_note | Adds a note, overwriting the old one. | | loses
# the description confirms a verb that does not lead
jira_get_card | Gets a card. | | reads
web_search | Performs a web search. | | reads
board_tree | A tool to show the tree. | | reads
# the server's own name is taken off
acme-crm: acme_crm_get_lead | | | reads
fetch: fetch | | | reads
# a tool that runs what an argument says never reads by its name
query_sql | Queries the database. | | writes?
run_command | | | -reads
query_warehouse get_rows | | sql | writes?
query_warehouse | | | reads
get_rows | Gets rows, read-only. | sql | reads
explain_plan | | sql | reads
query_table | | query | reads?
query_table | Finds rows. | query | reads
search_docs | | query | reads
query_table | | {"query":{},"action":{"enum":["list","delete"]}} | writes?
# which writes repeat without harm, and which lose something
set_limit create_or_update_user | | | loses repeats
star_repository | | | repeats -loses -adds
create_user | | | adds -repeats -once
create_and_update_user | | | loses -repeats
add_or_remove_member reboot_node | | | loses! -repeats
start_job | | | -repeats -loses -adds
send_mail | | | loses -loses! -repeats
update_user move_page run_script | | | loses
# the description settles a name that may be read both ways
deploy_logs_get | Shows the logs of a deployment. | | reads
get_create_fields | Gets the fields one may set. | | reads
repo_log | Shows the commits. | | reads
ticket_update_log | Shows who changed a ticket. | | reads
weather | Returns the weather. | | reads
find | Runs a search of the collection. | | reads
query_table | Executes a read-only SQL query. | | reads
get_or_create | Gets a session, or makes one. | | -reads
update_get | Fetches the update and installs it. | | -reads
tabs | List, create or close tabs. | | -reads
query_table | Executes a query. | | -reads
# what shows something may have done more, if its name acts
order_pizza message_user create_view | Shows the result. | | -reads
deploy_status import_history push_token_get | Shows what is known. | | reads
# what runs a reading reads
run_scan | Runs a scan of a host. | | reads
run_query execute_sql_query | Executes a read-only query. | | reads
run_query | Runs a query. | | -reads
run_job | Runs a scan of a host. | | -reads
# a language that may write does, unless it is said to read
query_graph | Query the graph in Cypher. | query | writes?
query_graph | Query the graph in Cypher, read-only. | query | reads
query_data | Query the store. | query | reads?
query_logs | Query the logs. | query | reads
query_logs | Executes a query of the logs. | query | reads
deploy_token_get_all | Gets the tokens. | | reads
list_tables | START HERE: List tables. | | reads
# a verb writes where it meets certain words
git_fetch | Downloads new commits. | | writes?
verify_domain extract_archive | | | writes?
fetch_page | Gets a page. | | reads
retrieve_sources | Retrieves the sources to your local project. | | writes?
check_feed | Checks for posts since the last check. | | reads? cursor
# a noun may be all of a name's verbs
file-reader | Reads a file. | | reads
# what changes by itself, or moves on, is read but never kept
get_random_fact get_current_time get_time get_job_status get_app_logs | | | reads clock
wait_for_build | | | reads clock
list_time_entries get_current_user get_changelog | | | reads -clock
get_fact | Returns a random fact. | | reads clock
pods_log | Gets the log of a pod. | | reads clock
dice | | | silent clock
get_next_page | Gets the next page. | | reads cursor -repeats
scroll_results | Fetches more rows. | | reads cursor
get_next_job | Gets the next job. | | reads? cursor
get_next_page | | | reads? cursor
# what hands over reads, unless it says where it puts it
download_report | Returns a report. | id | reads
download_report | Downloads a report. | id | writes?
render_text | | outputFormat | reads
take_screenshot | | selector | reads
render_text | | outputAudio | writes?
download_report | | filePath | writes?
download_report | Saves a report to disk. | id | writes?
get_report | Downloads a report, saved locally. | id | writes?
audit_page | Gets a score. | outputDir | writes?
get_response | Gets a response. | responseFilePath | writes?
read_file | Reads a file. | filePath | reads
# some verbs read because of what they are about
resolve_library_id resolveHostname convert_units capture_screenshot generate_uuid | | | reads
resolve_ticket convert_lead capture_payment generate_report | | | silent
# an inflected verb counts where it cannot be a noun
deletes_user | | | writes
gets_user orders_get | | | reads
getting_users | | | reads?
listing_delete | | | writes?
settings | | | silent
# a first sentence that says nothing gives way to the next, which is too little by itself
host_logs_list | Use this for logs. Lists the logs of a host. | | reads
channel | A new channel. Returns its id. | | -reads
mysql_query | Executes a read-only SQL query. | | reads
# an argument that chooses a write outweighs the name
get_tabs | | {"action":{"type":"string","enum":["list","close"]},"url":{}} | writes?
get_tabs | | {"action":{"type":"string","enum":["list","getAll"]},"url":{}} | reads
get_tabs | | action | reads
get_item | | {"method":{"enum":["issue","build","page"]}} | reads
get_item | | {"method":{"enum":["get_run","list_builds"]}} | reads
get_item | | {"method":{"enum":["start","stop"]}} | writes?
# the world is open unless something speaks for home
crm: get_lead | | | open
files: read_file | | | -open -closed
git: get_diff | | | -open -closed
files: fetch_url_to_file | | | open
"#;

#[test]
fn each_tool_is_read_as_its_case_says() {
    let cases = CASES
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    for case in cases {
        let columns: Vec<&str> = case.split('|').map(str::trim).collect();
        let [names, description, schema, expected] = columns[..] else {
            panic!("{case}");
        };
        let (server, names) = match names.split_once(": ") {
            Some((server, names)) => (Some(server), names),
            None => (None, names),
        };
        let schema = match schema.starts_with('{') {
            true => format!(r#"{{"properties":{schema}}}"#),
            false => format!(r#"{{"properties":{{"{schema}":{{"type":"string"}}}}}}"#),
        };
        let input_schema: Option<&RawValue> = serde_json::from_str(&schema).unwrap();
        for name in names.split(' ') {
            let subject = Subject {
                server,
                input_schema,
                ..described(name, description)
            };
            let found = words(&RuleSet::Standard.infer(&subject));
            for word in expected.split(' ') {
                let is = |word: &str| found.contains(&word);
                let holds = match word.strip_prefix('-') {
                    Some(word) => !is(word) && !is(&format!("{word}?")),
                    None => is(word),
                };
                assert!(holds, "{name} of {case}: not {word}: {found:?}");
            }
        }
    }
}

const WORDS: &[&str] = &[
    "get", "delete", "create", "update", "search", "log", "and", "or", "user", "order", "status",
    "comment", "run", "sql", "remove", "list", "view", "acme", "check", "in",
];

proptest! {
    #[test]
    fn any_text_at_all_is_read_without_harm(name in "\\PC{0,40}", description in "(?s).{0,120}") {
        for rules in [RuleSet::Standard, RuleSet::Neurolink] {
            let subject = described(&name, &description);
            prop_assert_eq!(rules.infer(&subject), rules.infer(&subject));
        }
    }

    #[test]
    fn nothing_is_both_read_only_and_destructive(
        words in prop::collection::vec(prop::sample::select(WORDS), 0..5),
        prose in prop::collection::vec(prop::sample::select(WORDS), 0..8),
    ) {
        let (name, description) = (words.join("_"), prose.join(" "));
        let hints = RuleSet::Standard.infer(&described(&name, &description)).annotations;
        prop_assert!(hints.read_only_hint != Some(true) || hints.destructive_hint != Some(true));
    }
}
