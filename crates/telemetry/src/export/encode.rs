//! Spans as bytes.
//!
//! The SDK's exporter first copies every name and text of a batch into messages, and then these into
//! bytes: that took more than half of the exporting thread's time. Here the spans are written as they
//! lie. Sending, headers and repeats stay with the SDK's exporter: it is asked to send no spans, and the
//! [`Body`] is put in place of that request's, compressed if that request says that it is.
//!
//! The messages are those of [`opentelemetry/proto/trace/v1/trace.proto`], as of OTLP 1.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use opentelemetry::trace::{SpanContext, SpanId, SpanKind, Status, TraceState};
use opentelemetry::{InstrumentationScope, KeyValue, Value};
use opentelemetry_http::Bytes;
use opentelemetry_proto::tonic::common::v1 as common;
use opentelemetry_proto::tonic::trace::v1::span::{Event, Link};
use opentelemetry_proto::tonic::trace::v1::{SpanFlags, span, status};
use opentelemetry_proto::transform::common::tonic::Attributes;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use parking_lot::Mutex;

use super::wire::{bytes, fixed32, fixed64, head, message, nested, number, text, with_head};

/// What the next request carries, and each repeat of it.
#[derive(Debug, Clone, Default)]
pub(super) struct Body(Arc<Mutex<Option<Bytes>>>);

impl Body {
    /// Returns what to send in place of what the SDK's exporter made.
    pub(super) fn get(&self) -> Option<Bytes> {
        self.0.lock().clone()
    }
}

/// Writes batches, and has another exporter send them.
#[derive(Debug)]
pub(super) struct Encoder<E> {
    exporter: E,
    resource: Resource,
    body: Body,
    /// Whether the other exporter compresses in a way that we do not, and so has to have the spans
    /// itself. None does that was built for this crate alone.
    compresses_otherwise: bool,
}

impl<E> Encoder<E> {
    /// `exporter` sends the body in place of its own.
    pub(super) fn new(exporter: E, resource: Resource, body: Body) -> Self {
        Self {
            exporter,
            resource,
            body,
            compresses_otherwise: super::env::compresses_otherwise(|name| std::env::var(name).ok()),
        }
    }
}

impl<E: SpanExporter> SpanExporter for Encoder<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        if self.compresses_otherwise {
            return self.exporter.export(batch).await;
        }
        *self.body.0.lock() = Some(request(&batch, &self.resource).into());
        // the spans are as good as sent: what they hold is free for those to come
        drop(batch);
        self.exporter.export(Vec::new()).await
    }
}

/// Writes an `ExportTraceServiceRequest`.
fn request(batch: &[SpanData], resource: &Resource) -> Vec<u8> {
    let mut out = Vec::with_capacity(batch.len() * TYPICAL);
    nested(&mut out, 1, batch.len() * TYPICAL, |out| {
        nested(out, 1, TYPICAL, |out| {
            attributes(out, 1, pairs(resource).iter());
        });
        let one_scope = |a: &SpanData, b: &SpanData| {
            // nearly always the same one: its name lies where the other's does
            a.instrumentation_scope == b.instrumentation_scope
        };
        for spans in batch.chunk_by(one_scope) {
            nested(out, 2, spans.len() * TYPICAL, |out| scope_spans(out, spans));
        }
        text(out, 3, resource.schema_url().unwrap_or_default());
    });
    out
}

/// How long a span is at most, usually, in bytes. A batch of longer ones grows.
const TYPICAL: usize = 2048;

fn pairs(resource: &Resource) -> Vec<KeyValue> {
    let pairs = resource.iter();
    pairs
        .map(|(key, value)| KeyValue::new(key.clone(), value.clone()))
        .collect()
}

fn scope_spans(out: &mut Vec<u8>, spans: &[SpanData]) {
    if let Some(first) = spans.first() {
        let scope = &first.instrumentation_scope;
        nested(out, 1, 0, |out| self::scope(out, scope));
        spans
            .iter()
            .for_each(|one| nested(out, 2, TYPICAL, |out| span(out, one)));
        text(out, 3, scope.schema_url().unwrap_or_default());
    }
}

fn scope(out: &mut Vec<u8>, scope: &InstrumentationScope) {
    text(out, 1, scope.name());
    text(out, 2, scope.version().unwrap_or_default());
    attributes(out, 3, scope.attributes());
}

fn span(out: &mut Vec<u8>, span: &SpanData) {
    let context = &span.span_context;
    bytes(out, 1, &context.trace_id().to_bytes());
    bytes(out, 2, &context.span_id().to_bytes());
    if *context.trace_state() != TraceState::NONE {
        text(out, 3, &context.trace_state().header());
    }
    if span.parent_span_id != SpanId::INVALID {
        bytes(out, 4, &span.parent_span_id.to_bytes());
    }
    text(out, 5, &span.name);
    number(out, 6, kind(&span.span_kind) as u64);
    fixed64(out, 7, nanos(span.start_time));
    fixed64(out, 8, nanos(span.end_time));
    attributes(out, 9, span.attributes.iter());
    number(out, 10, span.dropped_attributes_count.into());
    for event in span.events.iter() {
        let event = Event {
            time_unix_nano: nanos(event.timestamp),
            name: event.name.to_string(),
            attributes: Attributes::from(event.attributes.iter().cloned()).0,
            dropped_attributes_count: event.dropped_attributes_count,
        };
        message(out, 11, &event);
    }
    number(out, 12, span.events.dropped_count.into());
    for link in span.links.iter() {
        message(out, 13, &Link::from(link.clone()));
    }
    number(out, 14, span.links.dropped_count.into());
    nested(out, 15, 0, |out| status(out, &span.status));
    fixed32(out, 16, flags(context, span.parent_span_is_remote));
}

fn kind(kind: &SpanKind) -> span::SpanKind {
    kind.clone().into()
}

fn status(out: &mut Vec<u8>, status: &Status) {
    if let Status::Error { description } = status {
        text(out, 2, description);
    }
    number(out, 3, status::StatusCode::from(status) as u64);
}

/// The trace's own flags, and whether the parent is of another process.
fn flags(context: &SpanContext, parent_is_remote: bool) -> u32 {
    let remote = match parent_is_remote {
        true => SpanFlags::ContextIsRemoteMask as u32,
        false => 0,
    };
    u32::from(context.trace_flags().to_u8()) | SpanFlags::ContextHasIsRemoteMask as u32 | remote
}

fn attributes<'a>(out: &mut Vec<u8>, tag: u32, pairs: impl Iterator<Item = &'a KeyValue>) {
    for pair in pairs {
        let key = pair.key.as_str();
        match &pair.value {
            // what nearly all are: how long it is is known before it is written
            Value::String(value) => {
                let (value, of_key) = (value.as_str(), usize::from(!key.is_empty()));
                let any = with_head(value.len());
                head(out, tag, of_key * with_head(key.len()) + with_head(any));
                text(out, 1, key);
                head(out, 2, any);
                // there even if it is empty, as one of several kinds
                head(out, 1, value.len());
                out.extend_from_slice(value.as_bytes());
            }
            other => nested(out, tag, 0, |out| {
                text(out, 1, key);
                message(out, 2, &common::AnyValue::from(other.clone()));
            }),
        }
    }
}

fn nanos(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use opentelemetry::trace::{self, TraceFlags, TraceId};
    use opentelemetry::{Array, StringValue};
    use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
    use opentelemetry_proto::transform::trace::tonic::group_spans_by_resource_and_scope;
    use prost::Message;

    use super::super::queue::tests::span;
    use super::*;

    /// What the SDK's own exporter would send.
    fn expected(batch: Vec<SpanData>, resource: &Resource) -> ExportTraceServiceRequest {
        ExportTraceServiceRequest {
            resource_spans: group_spans_by_resource_and_scope(batch, &resource.into()),
        }
    }

    fn decoded(batch: &[SpanData], resource: &Resource) -> ExportTraceServiceRequest {
        ExportTraceServiceRequest::decode(&*request(batch, resource)).unwrap()
    }

    fn resource() -> Resource {
        let attributes = [KeyValue::new("service.name", "orders")];
        Resource::builder_empty()
            .with_schema_url(attributes, "https://example.org/schema")
            .build()
    }

    fn context(flags: u8, state: &str) -> SpanContext {
        let state = state.parse::<TraceState>().unwrap();
        let (trace, span) = (TraceId::from(7 << 90), SpanId::from(9));
        SpanContext::new(trace, span, TraceFlags::new(flags), true, state)
    }

    /// One that has everything a span can have.
    fn full() -> SpanData {
        let mut full = span(3);
        full.span_context = context(3, "a=1,b=2");
        full.parent_span_id = SpanId::from(77);
        full.parent_span_is_remote = true;
        full.span_kind = SpanKind::Server;
        full.name = "tools/call read_order".into();
        full.start_time = UNIX_EPOCH + Duration::new(1_700_000_000, 5);
        full.end_time = full.start_time + Duration::from_micros(2_100);
        full.attributes = vec![
            KeyValue::new("text", "grün".repeat(100)),
            KeyValue::new("empty", ""),
            KeyValue::new("", "no name"),
            KeyValue::new("yes", true),
            KeyValue::new("no", false),
            KeyValue::new("zero", 0),
            KeyValue::new("below", -5),
            KeyValue::new("float", 0.25),
            KeyValue::new("ints", Value::Array(Array::I64(vec![1, -1]))),
            KeyValue::new(
                "texts",
                Value::Array(Array::String(vec![StringValue::from("a")])),
            ),
        ];
        full.dropped_attributes_count = 4;
        let happened = trace::Event::new("happened", full.start_time, full.attributes.clone(), 2);
        full.events.events = vec![happened];
        full.events.dropped_count = 300;
        let attributes = vec![KeyValue::new("why", "beside")];
        full.links.links = vec![trace::Link::new(context(1, ""), attributes, 1)];
        full.links.dropped_count = 1;
        full.status = Status::error("refused");
        full
    }

    #[test]
    fn what_is_sent_is_what_the_sdk_would_send() {
        let resource = resource();
        let mut of_another_scope = span(4);
        of_another_scope.instrumentation_scope = InstrumentationScope::builder("mine")
            .with_version("1.0")
            .with_schema_url("https://example.org/scope")
            .with_attributes([KeyValue::new("a", "b")])
            .build();
        of_another_scope.status = Status::Ok;
        for batch in [
            vec![],
            vec![span(1)],
            vec![full()],
            vec![span(1), full(), span(2), of_another_scope],
        ] {
            let sent = decoded(&batch, &resource);
            assert_eq!(sent, expected(batch, &resource));
        }
    }

    #[test]
    fn a_time_before_1970_is_none() {
        let mut early = span(1);
        early.start_time = UNIX_EPOCH - Duration::from_secs(1);
        let resource = Resource::builder_empty().build();
        let sent = decoded(std::slice::from_ref(&early), &resource);
        assert_eq!(sent, expected(vec![early], &resource));
    }
}
