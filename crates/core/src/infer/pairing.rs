//! Finds the reading tool that shows what a writing tool did, by their names.
//!
//! `update_order` and `get_order` are about one thing. A name without its verb names the thing;
//! singular and plural are the same. Of several tools that read it, the verb decides: what shows
//! one thing comes first, but after a write that adds something, what lists them does, since a
//! caller who got no answer does not know the name of what is new. Where nothing reads
//! `order_status`, what reads `order` does.

use std::collections::HashMap;

use smallvec::SmallVec;

use super::lexicon::{self, Lexicon, Role, Roles, Use, VerbKind};
use super::words;

/// The things of a name, each in one spelling.
type Thing = SmallVec<[String; 4]>;

/// The tools of one replica set that only read, by what they read.
///
/// ```
/// use callward_core::infer::{Lexicon, Readers};
///
/// let reads = ["list_orders", "get_order", "getUser"];
/// let readers = Readers::new("shop", reads, Lexicon::standard());
/// assert_eq!(readers.of("update_order"), Some("get_order"));
/// assert_eq!(readers.of("create_order"), Some("list_orders"));
/// assert_eq!(readers.of("deleteUser"), Some("getUser"));
/// assert_eq!(readers.of("send_mail"), None);
/// ```
#[derive(Debug)]
pub struct Readers<'a, 'l> {
    /// The words of the names of the set and its servers, which are no thing of it.
    set: Thing,
    by_thing: HashMap<Thing, Vec<Reader<'a>>>,
    lexicon: &'l Lexicon,
}

#[derive(Debug)]
struct Reader<'a> {
    name: &'a str,
    verb: String,
}

impl<'a, 'l> Readers<'a, 'l> {
    /// Takes the name of the set, with those of its servers where they differ, and those of its
    /// tools that only read, in the order they are listed.
    pub fn new(set: &str, names: impl IntoIterator<Item = &'a str>, lexicon: &'l Lexicon) -> Self {
        let mut by_thing: HashMap<Thing, Vec<Reader<'a>>> = HashMap::new();
        for name in names {
            if let Some(read) = Parts::of(name, lexicon) {
                let verb = read.verb.to_ascii_lowercase();
                let reader = Reader { name, verb };
                by_thing.entry(read.plain()).or_default().push(reader);
            }
        }
        Self {
            set: thing(set),
            by_thing,
            lexicon,
        }
    }

    /// Returns the name of the tool that shows best what a call of this one did.
    pub fn of(&self, name: &str) -> Option<&'a str> {
        let written = Parts::of(name, self.lexicon)?;
        let order = match written.kind {
            VerbKind::Add => MANY_FIRST,
            _ => ONE_FIRST,
        };
        let rank = |reader: &&Reader<'a>| {
            let place = order.split(' ').position(|verb| verb == reader.verb);
            place.unwrap_or(usize::MAX)
        };
        // `my__update_order` is not checked with `my__search`
        let prefix = thing(name.split_once("__").map_or("", |(prefix, _)| prefix));
        let mut thing = written.thing;
        while !thing.iter().all(|word| prefix.contains(word)) {
            let found = self.by_thing.get(&thing).into_iter().flatten();
            // if equal, the first in the list
            if let Some(reader) = found.min_by_key(rank) {
                return Some(reader.name);
            }
            thing.pop();
            // `github_create_issue` is not checked with `search_github`
            if thing.iter().all(|word| self.set.contains(word)) {
                return None;
            }
        }
        None
    }
}

/// A name taken apart.
struct Parts<'a> {
    verb: &'a str,
    kind: VerbKind,
    thing: Thing,
}

impl<'a> Parts<'a> {
    fn of(name: &'a str, lexicon: &Lexicon) -> Option<Self> {
        let all = words::split(name);
        let at = verb(&all, lexicon)?;
        let word = *all.get(at)?;
        let is = |place: usize, role| all.get(place).is_some_and(|word| lexicon::is(word, role));
        let is_thing = |place: &usize| {
            // `create_or_update_file`: neither the word that joins nor the verb it joins
            let joins = is(*place, Role::Join);
            let joined = place
                .checked_sub(1)
                .is_some_and(|before| is(before, Role::Join));
            *place != at && !joins && !joined && !is(*place, Role::Filler)
        };
        let places = (0..all.len()).filter(is_thing);
        let words = places.filter_map(|at| all.get(at));
        Some(Self {
            verb: word,
            kind: lexicon.find(word)?.kind,
            thing: words.map(|word| words::singular(word)).collect(),
        })
    }

    /// The thing itself, where a name says that it asks for what is known of it:
    /// `get_order_details`.
    fn plain(mut self) -> Thing {
        let about = |word: &String| {
            Roles::of(word).has(Role::ReadingNoun) || ABOUT.split(' ').any(|about| about == word)
        };
        while self.thing.len() > 1 && self.thing.last().is_some_and(about) {
            self.thing.pop();
        }
        self.thing
    }
}

/// Finds the verb of a name: `get_order`, `order_get`, `shop_get_order`.
fn verb(all: &[&str], lexicon: &Lexicon) -> Option<usize> {
    let usage = |at: usize| Some(lexicon.find(all.get(at)?)?.usage);
    let certain = |at: &usize| match usage(*at) {
        Some(Use::Verb) => true,
        Some(Use::First) => *at == 0,
        _ => false,
    };
    let last = all.len().checked_sub(1)?;
    (0..all.len())
        .find(certain)
        .or_else(|| (last > 0 && usage(last) == Some(Use::First)).then_some(last))
        .or_else(|| (0..all.len()).find(|at| usage(*at).is_some()))
}

/// Takes all words of a text as a thing.
fn thing(text: &str) -> Thing {
    words::split(text)
        .iter()
        .map(|word| words::singular(word))
        .collect()
}

/// After a change of something known: what shows that one thing comes first.
const ONE_FIRST: &str = "get read fetch retrieve show view describe inspect find list search query \
     lookup check browse";
/// After an addition whose name is unknown: tools that show everything come first.
const MANY_FIRST: &str = "list find search query browse get read fetch retrieve show view describe \
     inspect lookup check";
/// Last words of a reading name that are not part of what it reads, beside those that inference
/// knows.
const ABOUT: &str = "all by content id record state status";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_is_checked_with_what_reads_the_same_thing() {
        let rows = "
get_order: update_order create_order update_order_status
list_orders: update_orders
get_orders: delete_order
read_order: set_order
list_comments: add_comment
getOrder: updateOrder
getFileContents: createOrUpdateFile
get_file_contents: create_or_update_file
find-users: DeleteUser
orders.get: orders.update
order_get: order_update
github_get_pull_request: github_merge_pull_request
get_order_status: cancel_order
list_categories: add_category
list_branches: create_branch
get_address: update_address
search_messages: send_message
read_file: write_file
query_records: insert_record
get_label: remove_label_batch
get_shop: update_shop
my__get_order my__search: my__update_order !my__create_user !my__send !your__update_order
search_eu1: !eu1_create_order
get__order: update__order
get_order whoami: !update_orderbook !pay !send_mail !___ !order
get list: !update_order
get_order_history_export: !update_order
search_shop: !shop_create_order
search_orders list_orders get_order: update_order=get_order create_order=list_orders
get_order getOrder: update_order
get_order get_order_line: update_order_line=get_order_line";
        for (reads, writes) in rows.lines().filter_map(|row| row.split_once(": ")) {
            let first = reads.split(' ').next();
            let others = ["list_things", "get_me", "search_web"];
            let all = reads.split(' ').chain(others);
            let readers = Readers::new("shop eu-1", all, Lexicon::standard());
            for write in writes.split(' ') {
                let (write, expected) = match write.split_once('=') {
                    Some((write, read)) => (write, Some(read)),
                    None => (write, first.filter(|_| !write.starts_with('!'))),
                };
                assert_eq!(
                    readers.of(write.trim_start_matches('!')),
                    expected,
                    "{write}"
                );
            }
        }
    }
}
