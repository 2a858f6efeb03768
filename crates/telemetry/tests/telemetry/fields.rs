//! Compares the table of names with the spans.

use std::collections::BTreeSet;
use std::sync::Arc;

use callward_telemetry::{CallSpanLayer, DiscoveryPurpose, DiscoverySpan, names};
use parking_lot::Mutex;
use tracing::Subscriber;
use tracing::span::{Attributes, Id};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

use crate::capture::{miss, plain, send};

type Declared = Arc<Mutex<BTreeSet<(&'static str, &'static str)>>>;

/// Collects the fields that each span declares.
struct Keep(Declared);

impl<S: Subscriber> Layer<S> for Keep {
    fn on_new_span(&self, attributes: &Attributes<'_>, _: &Id, _: Context<'_, S>) {
        let metadata = attributes.metadata();
        let fields = metadata.fields().iter();
        let pairs = fields.map(|field| (metadata.name(), field.name()));
        self.0.lock().extend(pairs);
    }
}

#[tokio::test(start_paused = true)]
async fn each_span_has_exactly_its_listed_fields() {
    let declared = Declared::default();
    let subscriber = tracing_subscriber::registry().with(Keep(declared.clone()));
    let _guard = tracing::subscriber::set_default(subscriber);
    send(&CallSpanLayer::new(), &miss(), plain()).await.unwrap();
    let server = "a".parse().unwrap();
    drop(DiscoverySpan::begin(&server, DiscoveryPurpose::Probe));

    let listed = |field: &names::Field| {
        let name = field.name;
        field.spans.iter().map(move |span| (*span, name))
    };
    let listed: BTreeSet<_> = names::ALL.iter().flat_map(listed).collect();
    assert_eq!(*declared.lock(), listed);
    let distinct: BTreeSet<_> = names::ALL.iter().map(|field| field.name).collect();
    assert_eq!(distinct.len(), names::ALL.len());
}
