//! The lists of tools that callers see: one for all, or one for each set of tools that the rules
//! and its toolset leave to a caller.

use std::collections::{HashMap, HashSet};
use std::future::ready;
use std::sync::Arc;

use arc_swap::ArcSwap;
use bytes::Bytes;
use callward::core::{BoxStream, Caller, Credential, List, Method, Principal};
use callward::registry::{Catalogue, Entry};
use callward::{Stack, Tool};
use callward_mcp::server::ToolListing;
use callward_toolset::Name;
use futures_util::{StreamExt as _, stream};
use parking_lot::Mutex;

use crate::builtin::{is_builtin, is_finder};
use crate::config::{Listing, ListingMode};
use crate::relay;
use crate::toolsets::{Active, Toolsets};

/// How many callers are known by what they see, before all are forgotten.
const MAX_CALLERS: usize = 1024;
/// How many listings are kept, which are written to be sent, before all are forgotten.
const MAX_LISTINGS: usize = 32;

/// How many bytes of a list are about a token.
const BYTES_PER_TOKEN: usize = 4;

/// What a caller sees.
#[derive(Clone, Default)]
pub(crate) struct Seen {
    /// The tools that it may call.
    pub(crate) tools: Arc<ToolListing>,
    /// The list it gets: those tools, or only the built-in ones if it searches.
    pub(crate) listed: Arc<ToolListing>,
}

impl Seen {
    /// Returns `true` if a tool that the caller may call is in its list.
    pub(crate) fn lists(&self, tool: &Tool) -> bool {
        is_listed(tool, self.searches())
    }

    /// Returns `true` if the caller searches its tools.
    pub(crate) fn searches(&self) -> bool {
        !Arc::ptr_eq(&self.tools, &self.listed)
    }
}

/// Returns `true` if a tool is in a list of callers who search, or of others.
fn is_listed(tool: &Tool, searches: bool) -> bool {
    match searches {
        true => is_builtin(tool),
        false => !is_finder(tool),
    }
}

/// The listings of the current catalogue.
#[derive(Default)]
pub(crate) struct Listings {
    listing: Listing,
    /// For all callers without a toolset, where there are no rules.
    all: ArcSwap<Seen>,
    some: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// Of the catalogue, and of the toolsets.
    of: (u64, u64),
    /// By which tools of the catalogue are listed, and the toolset that has notes about them.
    listings: HashMap<(Vec<bool>, Option<Name>), Seen>,
    /// What decides about a caller: its session does not, but for its toolset.
    callers: HashMap<(Principal, Arc<Credential>, Option<Name>), Seen>,
}

impl Listings {
    pub(crate) fn new(listing: Listing) -> Arc<Self> {
        Arc::new(Self {
            listing,
            ..Self::default()
        })
    }

    /// Returns what a caller sees now: the same lists while its tools are the same.
    pub(crate) fn of(
        &self,
        stack: &Stack,
        toolsets: Option<&Arc<Toolsets>>,
        caller: &Caller,
    ) -> Seen {
        let catalogue = stack.catalogue();
        let active = toolsets.and_then(|toolsets| toolsets.active(&catalogue, caller));
        let (policy, active) = (stack.policy(), active.as_ref());
        if policy.is_none() && active.is_none() {
            let all = self.all.load_full();
            if all.tools.generation == catalogue.generation() {
                return Seen::clone(&all);
            }
            let all = self.list(&catalogue, None, |_| true);
            self.all.store(Arc::new(all.clone()));
            return all;
        }
        let mut kept = self.some.lock();
        let of_toolsets = active.map_or(kept.of.1, |active| active.generation);
        if kept.of != (catalogue.generation(), of_toolsets) {
            *kept = Kept {
                of: (catalogue.generation(), of_toolsets),
                ..Kept::default()
            };
        }
        let name = active.map(|active| active.name.clone());
        let key = (
            caller.principal.clone(),
            caller.credential.clone(),
            name.clone(),
        );
        if let Some(known) = kept.callers.get(&key) {
            return known.clone();
        }
        let entries = catalogue.entries().iter();
        let listed: Vec<bool> = entries
            .map(|entry| {
                policy.is_none_or(|policy| policy.lists(caller, entry.tool()))
                    && active.is_none_or(|active| active.listed(entry).is_some())
            })
            .collect();
        if kept.callers.len() >= MAX_CALLERS || kept.listings.len() >= MAX_LISTINGS {
            kept.callers.clear();
            kept.listings.clear();
        }
        let is_listed = |place| listed.get(place).is_some_and(|listed| *listed);
        let same = (listed.clone(), name);
        let listing = match kept.listings.get(&same) {
            Some(listing) => listing.clone(),
            None => self.list(&catalogue, active, is_listed),
        };
        kept.listings.insert(same, listing.clone());
        kept.callers.insert(key, listing.clone());
        listing
    }

    /// Returns a stream with one item for each time a list that a caller sees changed.
    pub(crate) fn changes(
        self: &Arc<Self>,
        stack: &Stack,
        toolsets: Option<&Arc<Toolsets>>,
        caller: &Caller,
    ) -> BoxStream<'static, List> {
        let (listings, of, caller) = (self.clone(), stack.clone(), caller.clone());
        let toolsets = toolsets.cloned();
        let chosen = toolsets.as_ref().map(|toolsets| toolsets.changes());
        let chosen = chosen.unwrap_or_else(|| Box::pin(stream::pending()));
        let mut last = listings.of(&of, toolsets.as_ref(), &caller);
        let lists = |of: &_, caller: &_| relay::methods(of, caller).into_iter().map(Method::list);
        let mut offered: HashSet<_> = lists(&of, &caller).collect();
        // the stack's end ends it
        let ends = stack.changes().map(Some).chain(stream::iter([None]));
        let all = stream::select(ends, chosen.map(Some));
        let all = all
            .take_while(|list| ready(list.is_some()))
            .filter_map(ready);
        let changes = all.filter(move |list| {
            if *list != List::Tools {
                // one that was offered and is not any more has changed, too
                offered.extend(lists(&of, &caller));
                return ready(offered.contains(&Some(*list)));
            }
            let now = listings.of(&of, toolsets.as_ref(), &caller);
            // of several changes at once, the client may have seen the list after the first
            let is_next = now.listed.generation <= last.listed.generation + 1;
            let is_same = is_next && now.listed.tools() == last.listed.tools();
            last = now;
            ready(!is_same)
        });
        Box::pin(changes)
    }

    /// Lists the tools of these places with the servers' own bytes, but for the notes of a toolset.
    fn list(
        &self,
        catalogue: &Catalogue,
        active: Option<&Active>,
        is_seen: impl Fn(usize) -> bool,
    ) -> Seen {
        let entries = catalogue.entries().iter().enumerate();
        let with_notes = |entry: &Arc<Entry>| match active {
            Some(active) => active.listed(entry).cloned(),
            None => Some(entry.listed().clone()),
        };
        let seen = entries.filter(|(place, _)| is_seen(*place));
        let seen = seen.filter_map(|(_, entry)| Some((entry.tool(), with_notes(entry)?)));
        let seen: Vec<_> = seen.collect();
        let listing = |searches| {
            let tools = seen.iter().filter(|(tool, _)| is_listed(tool, searches));
            let tools = tools.map(|(_, bytes)| bytes.clone()).collect();
            Arc::new(ToolListing::new(catalogue.generation(), tools))
        };
        let tools = listing(false);
        let bytes = || tools.tools().iter().map(Bytes::len).sum::<usize>();
        let searches = match self.listing.mode {
            ListingMode::All => false,
            ListingMode::Search => true,
            ListingMode::Auto => bytes() / BYTES_PER_TOKEN > self.listing.max_tokens,
        };
        let listed = if searches {
            listing(true)
        } else {
            tools.clone()
        };
        Seen { tools, listed }
    }
}

#[cfg(test)]
mod tests {
    use callward::auth::{Policy, rules::Then};
    use callward::core::BoxFuture;
    use callward::{
        ServerId, ToolCall, ToolDefinition, ToolError, ToolOutput, ToolServer, ToolSpec, Tools,
    };
    use futures_util::FutureExt as _;
    use serde_json::{Value, json};

    use super::*;

    /// A server that has prompts.
    struct Prompts(ServerId);

    impl ToolServer for Prompts {
        fn id(&self) -> &ServerId {
            &self.0
        }

        fn list_tools(&self) -> BoxFuture<'_, Result<Vec<ToolDefinition>, ToolError>> {
            let prompts = ToolDefinition::method(Method::ListPrompts);
            Box::pin(ready(Ok(vec![prompts])))
        }

        fn call(&self, _: ToolCall) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
            Box::pin(ready(Ok(ToolOutput::text("x"))))
        }
    }

    #[tokio::test]
    async fn a_client_is_notified_of_the_first_prompts_and_of_the_last() {
        let stack = Stack::builder().build().await.unwrap();
        let mut changes = Arc::<Listings>::default().changes(&stack, None, &Caller::local());
        let mut heard = || changes.next().now_or_never().flatten();
        let id: ServerId = "s".parse().unwrap();
        stack.add_server(Prompts(id.clone())).await.unwrap();
        assert_eq!(heard(), Some(List::Prompts));
        stack.remove_server(&id).unwrap();
        assert_eq!([heard(), heard()], [Some(List::Prompts), None]);
    }

    #[tokio::test]
    async fn a_client_is_notified_of_changes_of_tools_that_it_sees() {
        let deny = json!({"tool": ["hidden.*"], "then": "deny"});
        let rules = vec![serde_json::from_value(deny).unwrap()];
        let policy = Policy::new(rules, Then::Allow);
        let stack = Stack::builder().authorize(policy).build().await.unwrap();
        let mut changes = Arc::<Listings>::default().changes(&stack, None, &Caller::local());
        for (name, is_notified) in [("hidden", false), ("shown", true), ("hidden2", true)] {
            let run = |_: Value| ready(Ok::<_, String>("x"));
            let tools = Tools::new(name).unwrap().tool(ToolSpec::new("get_x"), run);
            stack.add_server(tools.unwrap()).await.unwrap();
            assert_eq!(
                changes.next().now_or_never().is_some(),
                is_notified,
                "{name}"
            );
        }
    }

    #[tokio::test]
    async fn a_list_that_grows_too_long_becomes_a_search() {
        let listing = Listing {
            mode: ListingMode::Auto,
            max_tokens: 20,
        };
        let stack = Stack::builder().build().await.unwrap();
        let listings = Listings::new(listing);
        let caller = Caller::local();
        let mut changes = listings.changes(&stack, None, &caller);
        for (name, tools, listed) in [("a", 1, 1), ("b", 2, 0)] {
            let run = |_: Value| ready(Ok::<_, String>("x"));
            let added = Tools::new(name).unwrap().tool(ToolSpec::new("get_x"), run);
            stack.add_server(added.unwrap()).await.unwrap();
            let seen = listings.of(&stack, None, &caller);
            let lengths = (seen.tools.tools().len(), seen.listed.tools().len());
            assert_eq!(lengths, (tools, listed));
            let again = listings.of(&stack, None, &caller);
            assert!(Arc::ptr_eq(&seen.listed, &again.listed));
            assert!(changes.next().now_or_never().is_some());
        }
    }
}
