//! Subscriptions to resources: which client has which, and what servers are asked for.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use callward::auth::rules::Verdict;
use callward::core::{BoxFuture, BoxStream, Method, ServerEvent};
use callward::{
    Caller, Delivery, ErrorKind, ReplicaSetId, Stack, Tool, ToolDefinition, ToolError, ToolServer,
};
use callward_mcp::client::Upstream;
use callward_mcp::server::{CallRequest, Subscriber};
use callward_mcp::wire::object;
use futures_util::future::join_all;
use futures_util::{StreamExt as _, stream};
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::Notify;

use crate::backend::relayed;
use crate::relay::Owner;
use crate::rounds::Exchange;
use crate::runtime::Runtime;

/// How many resources of one set all clients together may be subscribed to.
const MAX_OF_SET: usize = 1_024;
/// How many one client may be subscribed to.
const MAX_OF_CLIENT: usize = 256;
/// The longest URI of one, in bytes.
const MAX_URI: usize = 8 << 10;

/// Who is subscribed to which resource.
pub(crate) struct Subscriptions {
    stack: Stack,
    upstreams: Vec<(ReplicaSetId, Upstream)>,
    clients: Mutex<HashMap<ReplicaSetId, ByUri>>,
    next: AtomicU64,
}

/// Clients of one set, by its own URIs.
type ByUri = BTreeMap<Arc<str>, Vec<Client>>;

/// A client that is subscribed to a resource.
struct Client {
    number: u64,
    subscribed: Weak<Subscribed>,
    /// The URI as clients see it.
    seen: Arc<str>,
}

impl Subscriptions {
    /// Follows the updates that servers announce, until they are shut down.
    pub(crate) fn start(stack: &Stack, upstreams: &[Upstream]) -> Arc<Self> {
        let servers = stack.servers();
        let of_set = |upstream: &Upstream| {
            let server = servers.iter().find(|server| server.id == *upstream.id());
            Some((server?.set.clone(), upstream.clone()))
        };
        let all = Arc::new(Self {
            stack: stack.clone(),
            upstreams: upstreams.iter().filter_map(of_set).collect(),
            clients: Mutex::default(),
            next: AtomicU64::new(0),
        });
        for (set, upstream) in &all.upstreams {
            let (weak, set) = (Arc::downgrade(&all), set.clone());
            let Some(mut events) = upstream.events() else {
                continue;
            };
            tokio::spawn(async move {
                while let Some(event) = events.next().await {
                    let Some(all) = weak.upgrade() else { return };
                    if let ServerEvent::ResourceUpdated(Some(uri)) = event {
                        all.updated(&set, &uri);
                    }
                }
            });
        }
        all
    }

    /// Notifies the clients that are subscribed to a resource.
    fn updated(&self, set: &ReplicaSetId, uri: &str) {
        // first: a client that is notified reads it
        let read = ToolDefinition::method(Method::ReadResource).name;
        self.stack.cache().purge_tool(set, &read);
        let concerned: Vec<_> = {
            let clients = self.clients.lock();
            let of_uri = clients.get(set).and_then(|of_set| of_set.get(uri));
            let concerned = of_uri.into_iter().flatten().filter_map(|client| {
                let subscribed = client.subscribed.upgrade()?;
                Some((subscribed, client.seen.clone()))
            });
            concerned.collect()
        };
        for (client, seen) in concerned {
            client.note(&self.stack, seen);
        }
    }

    /// Subscribes a client, and asks the servers of the set if it is the first one.
    fn add(&self, client: Client, resource: &Resource) -> Result<(), ToolError> {
        let mut clients = self.clients.lock();
        let of_set = clients.entry(resource.set.clone()).or_default();
        if !of_set.contains_key(&resource.uri) && of_set.len() >= MAX_OF_SET {
            let text = format!(
                "clients are subscribed to {MAX_OF_SET} resources of `{}`, as many as may be: try \
                 again later",
                &resource.set
            );
            return Err(overloaded(text));
        }
        of_set.entry(resource.uri.clone()).or_default().push(client);
        self.ask(&resource.set, of_set);
        Ok(())
    }

    /// Ends the subscription of a client. If it was the last one, the servers of the set are asked
    /// for no more updates.
    fn remove(&self, number: u64, resource: &Resource) {
        let mut clients = self.clients.lock();
        let Some(of_set) = clients.get_mut(&resource.set) else {
            return;
        };
        if let Some(of_uri) = of_set.get_mut(&resource.uri) {
            of_uri.retain(|client| client.number != number);
            if of_uri.is_empty() {
                of_set.remove(&resource.uri);
                self.ask(&resource.set, of_set);
            }
        }
    }

    fn ask(&self, set: &ReplicaSetId, of_set: &ByUri) {
        for server in self.of_set(set) {
            server.watch_resources(of_set.keys().cloned().collect());
        }
    }

    fn of_set<'a>(&'a self, set: &'a ReplicaSetId) -> impl Iterator<Item = &'a Upstream> {
        let of_set = self.upstreams.iter().filter(move |(of, _)| of == set);
        of_set.map(|(_, upstream)| upstream)
    }
}

/// The subscriptions of one client.
pub(crate) struct Subscribed {
    runtime: Arc<Runtime>,
    number: u64,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    /// By the URI that clients see.
    resources: HashMap<Arc<str>, Resource>,
    /// Those that were updated, of which the client is not notified yet.
    updated: BTreeSet<Arc<str>>,
}

/// A resource that a client is subscribed to.
#[derive(Clone)]
struct Resource {
    set: ReplicaSetId,
    /// Its URI as its set knows it.
    uri: Arc<str>,
    /// Who subscribed to it.
    caller: Arc<Caller>,
}

impl Resource {
    /// Returns `true` if its client may read it now, by the rules.
    fn may_be_read(&self, stack: &Stack) -> bool {
        let Some(policy) = stack.policy() else {
            return true;
        };
        let catalogue = stack.catalogue();
        let mut tools = catalogue.methods().iter().map(|entry| entry.tool());
        let reads = |tool: &&Arc<Tool>| {
            tool.definition.method == Method::ReadResource && *tool.set() == self.set
        };
        tools.find(reads).is_some_and(|tool| {
            let read = json!({"uri": self.uri}).to_string();
            let read = stack.prepare_method(tool.clone(), read);
            let ruling = policy.decide(&self.caller, tool, read.applied(), read.arguments());
            ruling.verdict == Verdict::Allow
        })
    }
}

impl Subscribed {
    pub(crate) fn new(runtime: Arc<Runtime>) -> Self {
        let number = runtime.subscriptions.next.fetch_add(1, Ordering::Relaxed);
        Self {
            runtime,
            number,
            state: Mutex::default(),
            changed: Notify::new(),
        }
    }

    /// Takes note that a resource was updated, unless the client may not read it any more.
    fn note(&self, stack: &Stack, seen: Arc<str>) {
        let resource = self.state.lock().resources.get(&seen).cloned();
        if resource.is_some_and(|resource| resource.may_be_read(stack)) {
            self.state.lock().updated.insert(seen);
            self.changed.notify_one();
        }
    }

    /// Subscribes to a resource that was read.
    fn add(self: &Arc<Self>, seen: &str, resource: &Resource) -> Result<(), ToolError> {
        let seen: Arc<str> = seen.into();
        let mut state = self.state.lock();
        let is_new = !state.resources.contains_key(&seen);
        if is_new && state.resources.len() >= MAX_OF_CLIENT {
            let text = format!(
                "the client is subscribed to {MAX_OF_CLIENT} resources, as many as may be: \
                 unsubscribe from one"
            );
            return Err(overloaded(text));
        }
        if is_new {
            let client = Client {
                number: self.number,
                subscribed: Arc::downgrade(self),
                seen: seen.clone(),
            };
            self.runtime.subscriptions.add(client, resource)?;
        }
        state.resources.insert(seen, resource.clone());
        Ok(())
    }
}

impl Subscriber for Subscribed {
    /// Reads the resource first: a client that may not read it is answered as to a read, and which
    /// set has it is known then.
    fn subscribe(self: Arc<Self>, read: CallRequest) -> BoxFuture<'static, Result<(), ToolError>> {
        Box::pin(async move {
            let _counted = self.runtime.stop.calls.token();
            let (seen, caller) = (read.name.clone(), read.caller.clone());
            let read = relayed(&self.runtime, read, Exchange::default(), None);
            let (owner, _) = read.await?;
            let own = |(tool, params): Owner| {
                let uri = object::get_member(&params, "uri").ok()??;
                let uri = serde_json::from_slice::<String>(uri).ok()?.into();
                let set = tool.set().clone();
                Some(Resource { set, uri, caller })
            };
            let resource = owner.and_then(own).filter(|_| seen.len() <= MAX_URI);
            let resource = resource.ok_or_else(|| {
                let text = format!("the URI is longer than {MAX_URI} bytes: use a shorter one");
                invalid(text)
            })?;
            let servers: Vec<_> = {
                let servers = self.runtime.subscriptions.of_set(&resource.set);
                let subscribes = |server: &&Upstream| {
                    let info = server.server_info();
                    info.is_some_and(|info| info.subscribes)
                };
                servers.filter(subscribes).cloned().collect()
            };
            if servers.is_empty() {
                let set = &resource.set;
                let text = format!("`{set}` announces no updates of resources: read it again");
                return Err(invalid(text));
            }
            self.add(&seen, &resource)?;
            join_all(servers.iter().map(|server| server.watching(&resource.uri))).await;
            Ok(())
        })
    }

    fn unsubscribe(&self, uri: &str) {
        let mut state = self.state.lock();
        state.updated.remove(uri);
        if let Some(resource) = state.resources.remove(uri) {
            self.runtime.subscriptions.remove(self.number, &resource);
        }
    }

    fn updates(self: Arc<Self>) -> BoxStream<'static, String> {
        Box::pin(stream::unfold(self, async |subscribed| {
            loop {
                let changed = subscribed.changed.notified();
                let updated = subscribed.state.lock().updated.pop_first();
                if let Some(uri) = updated {
                    return Some((uri.to_string(), subscribed.clone()));
                }
                changed.await;
            }
        }))
    }
}

impl Drop for Subscribed {
    fn drop(&mut self) {
        for resource in self.state.get_mut().resources.values() {
            self.runtime.subscriptions.remove(self.number, resource);
        }
    }
}

impl fmt::Debug for Subscribed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let resources = self.state.lock().resources.len();
        f.debug_struct("Subscribed")
            .field("resources", &resources)
            .finish_non_exhaustive()
    }
}

fn overloaded(text: String) -> ToolError {
    ToolError::new(ErrorKind::Overloaded, Delivery::NotSent, text)
}

fn invalid(text: String) -> ToolError {
    ToolError::new(ErrorKind::InvalidCall, Delivery::NotSent, text)
}
