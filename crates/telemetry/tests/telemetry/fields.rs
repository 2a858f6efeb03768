//! Compares the table of names with the spans.

use std::collections::BTreeSet;

use callward_telemetry::{CallSpanLayer, DiscoverySpan, names};

use crate::capture::{Capture, miss, plain, send};

#[tokio::test(start_paused = true)]
async fn each_span_has_exactly_its_listed_fields() {
    let capture = Capture::start();
    send(&CallSpanLayer::default(), &miss(), plain())
        .await
        .unwrap();
    drop(DiscoverySpan::begin(&"a".parse().unwrap()));

    for span in names::SPANS {
        let listed = names::ALL
            .iter()
            .filter(|field| field.spans.contains(&span.name));
        let listed: BTreeSet<_> = listed.map(|field| field.name).collect();
        let declared = capture.one(span.name).declared;
        assert_eq!(declared.into_iter().collect::<BTreeSet<_>>(), listed);
    }
    let distinct: BTreeSet<_> = names::ALL.iter().map(|field| field.name).collect();
    assert_eq!(distinct.len(), names::ALL.len());
}
