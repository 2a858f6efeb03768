//! Subscriptions to resources: of clients of both eras, at a server of the earlier one.

use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};

use crate::clients::{Legacy, Pipe, answer_of};
use crate::scripted::{Script, tool};
use crate::support::{Gateway, within};

/// Has `doc:1` and `doc:2`, and answers a call with which of them are subscribed to, after it has
/// announced an update of `doc:1`. A call that says so ends it.
const EACH: &str = r#"
offers=',"resources":{"subscribe":true}' answer= code=-32002
case $line in
*'"resources/subscribe"'*) answer='{}' known="$known+${line#*doc:}" known=${known%%\"*} ;;
*'"resources/unsubscribe"'*) answer='{}' known= ;;
*'"resources/read"'*'"uri":"doc:'[12]'"'*)
  reads=$((${reads:-0} + 1)) answer="{\"contents\":[{\"uri\":\"doc:1\",\"text\":\"read $reads\"}]}" ;;
esac
"#;
const CALL: &str = r#"case $line in *ends*) exit ;; esac
for _ in $(seq 200); do
  echo '{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"doc:1"}}'
done
says "known $known""#;

fn script() -> Script<'static> {
    Script {
        each: EACH,
        call: CALL,
        ..Script::counting(&json!([tool("change", false)]))
    }
}

/// The messages on a stream of events.
struct Stream(Response, String);

impl Stream {
    async fn open(request: RequestBuilder) -> Self {
        let answer = within("the stream", request.send()).await.unwrap();
        Self(answer, String::new())
    }

    /// Waits for a notification of this method, and returns its parameters.
    async fn until(&mut self, method: &str) -> Value {
        loop {
            while let Some((event, rest)) = self.1.split_once("\n\n") {
                let message = event.strip_prefix("data: ").map(answer_of);
                self.1 = rest.to_owned();
                if let Some(message) = message.filter(|message| message["method"] == method) {
                    return message["params"].clone();
                }
            }
            let part = within(method, self.0.chunk()).await.unwrap().unwrap();
            self.1.push_str(std::str::from_utf8(&part).unwrap());
        }
    }

    async fn updated(&mut self) -> Value {
        self.until("notifications/resources/updated").await
    }
}

async fn ask(client: &Legacy, method: &str, uri: &str) -> Value {
    let answer = client.post(method, Some(7), json!({"uri": uri})).await;
    answer_of(&answer.text().await.unwrap())
}

#[tokio::test]
async fn a_session_is_notified_of_the_resources_it_subscribed_to() {
    let kept = "[servers.a.tools.\"resources/read\"]\nttl = \"1h\"";
    let rule = "[[authorize]]\ntool = [\"b.resources/*\"]\nthen = \"deny\"\n";
    let (a, b) = (script().server("a"), script().server("b"));
    let gateway = Gateway::fixed(&format!("{rule}{a}{kept}\n{b}")).await;
    let client = Legacy::open(&gateway.url).await;
    let offered = &client.hello["result"]["capabilities"]["resources"];
    assert_eq!(*offered, json!({"listChanged": true, "subscribe": true}));
    for (uri, code) in [
        ("doc:9#a", -32002),
        ("doc:1", -32002),
        ("doc:1#b", -32002),
        ("doc:1#c", -32002),
    ] {
        let refused = ask(&client, "resources/subscribe", uri).await;
        assert_eq!(refused["error"]["code"], code, "{uri}: {refused}");
    }
    let listens = client.request(Method::GET);
    let mut stream = Stream::open(listens.header("accept", "text/event-stream")).await;
    let read = async || {
        let read = ask(&client, "resources/read", "doc:1#a").await;
        read["result"]["contents"][0]["text"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!([read().await, read().await], ["read 1", "read 1"]);
    for uri in ["doc:1#a", "doc:2#a", "doc:1#a"] {
        let subscribed = ask(&client, "resources/subscribe", uri).await;
        assert_eq!(subscribed["result"], json!({}), "{subscribed}");
    }
    assert_eq!(client.call("a__change", json!({})).await, "known +1+2");
    assert_eq!(stream.updated().await, json!({"uri": "doc:1#a"}));
    assert_ne!(read().await, "read 1");
    // what was subscribed to is so again after a restart, and may have been missed meanwhile
    client.call("a__change", json!({"ends": true})).await;
    while stream.updated().await != json!({"uri": "doc:2#a"}) {}
    for uri in ["doc:1#a", "doc:2#a"] {
        let ended = ask(&client, "resources/unsubscribe", uri).await;
        assert_eq!(ended["result"], json!({}), "{ended}");
    }
    while client.call("a__change", json!({})).await != "known " {}
}

#[tokio::test]
async fn a_modern_client_subscribes_to_what_there_is() {
    let gateway = Gateway::fixed(&script().server("a")).await;
    let asked = json!(["doc:1#a", "doc:9#a"]);
    let asked = json!({"notifications": {"resourceSubscriptions": asked}});
    let mut stream = Stream::open(gateway.modern("subscriptions/listen", asked)).await;
    let tag = json!({"io.modelcontextprotocol/subscriptionId": 1});
    let accepted = stream
        .until("notifications/subscriptions/acknowledged")
        .await;
    let expected = json!({"resourceSubscriptions": ["doc:1#a"]});
    assert_eq!(accepted, json!({"_meta": tag, "notifications": expected}));
    let called = gateway.mcp("a__change", json!({})).await;
    assert_eq!(
        called["result"]["content"][0]["text"], "known +1",
        "{called}"
    );
    assert_eq!(
        stream.updated().await,
        json!({"uri": "doc:1#a", "_meta": tag})
    );
    drop(stream);
    // the last one to subscribe is gone
    let unknown = async || {
        let called = gateway.mcp("a__change", json!({})).await;
        called["result"]["content"][0]["text"] == "known "
    };
    while !unknown().await {}
}

#[tokio::test]
async fn a_client_on_a_pipe_is_notified_without_a_stream() {
    let mut pipe = Pipe::around(&script()).await;
    let subscribed = json!({"uri": "doc:1"});
    let answer = pipe
        .request("resources/subscribe", subscribed.clone())
        .await;
    assert_eq!(answer["result"], json!({}), "{answer}");
    pipe.send("tools/call", json!({"name": "change", "arguments": {}}))
        .await;
    let updated = pipe.notified("notifications/resources/updated").await;
    assert_eq!(updated, subscribed);
    assert!(pipe.close().await);
}
