//! Subscriptions to resources: of clients of both eras, at a server of the earlier one.

use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};

use crate::clients::{Legacy, Pipe, answer_of};
use crate::scripted::{Script, tool};
use crate::support::{Gateway, said, within};

const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

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
                let mut lines = event.lines();
                let data = lines.find_map(|line| line.strip_prefix("data: "));
                let message = data.filter(|data| !data.is_empty()).map(answer_of);
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

/// Opens the stream of a session.
async fn stream_of(client: &Legacy) -> Stream {
    let request = client.request(Method::GET);
    Stream::open(request.header("accept", "text/event-stream")).await
}

/// Subscribes a modern client.
async fn listen(gateway: &Gateway, uris: &[&str]) -> Stream {
    let asked = json!({"notifications": {"resourceSubscriptions": uris}});
    Stream::open(gateway.modern("subscriptions/listen", asked)).await
}

/// Calls the tool as a modern client.
async fn change(gateway: &Gateway) -> String {
    said(&gateway.mcp("a__change", json!({})).await).to_owned()
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
    let mut stream = stream_of(&client).await;
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
    let mut stream = listen(&gateway, &["doc:1#a", "doc:9#a"]).await;
    let tag = json!({"io.modelcontextprotocol/subscriptionId": 1});
    let accepted = stream.until(ACKNOWLEDGED).await;
    let expected = json!({"resourceSubscriptions": ["doc:1#a"]});
    assert_eq!(accepted, json!({"_meta": tag, "notifications": expected}));
    assert_eq!(change(&gateway).await, "known +1");
    let updated = stream.updated().await;
    assert_eq!(updated, json!({"uri": "doc:1#a", "_meta": tag}));
    drop(stream);
    // the last one to subscribe is gone
    while change(&gateway).await != "known " {}
}

#[tokio::test]
async fn clients_of_both_eras_are_notified_of_servers_of_both_eras() {
    let inner = Gateway::fixed(&format!("{}prefix = false\n", script().server("a"))).await;
    let http = format!("[servers.a]\nurl = {:?}\n", inner.url);
    // a gateway is a server of both eras
    let wrapped = script().command().map(|part| part.replace('$', "$$"));
    let wrapped = [&["run".to_owned(), "--".to_owned()], &wrapped[..]].concat();
    let pipe = json!(wrapped);
    let pipe = format!("[servers.a]\ncommand = \"CALLWARD\"\nargs = {pipe}\n");
    for (server, era) in [
        (&pipe, "modern"),
        (&http, "modern"),
        (&pipe, "legacy"),
        (&http, "legacy"),
    ] {
        let gateway = Gateway::fixed(&format!("{server}era = {era:?}\n")).await;
        let client = Legacy::open(&gateway.url).await;
        // each has an instance from here on
        client.call("a__change", json!({})).await;
        change(&gateway).await;
        let mut streams = [
            stream_of(&client).await,
            listen(&gateway, &["doc:2#a", "doc:1#a"]).await,
        ];
        streams[1].until(ACKNOWLEDGED).await;
        let subscribed = ask(&client, "resources/subscribe", "doc:1#a").await;
        assert_eq!(
            subscribed["result"],
            json!({}),
            "{era} {server}: {subscribed}"
        );
        client.call("a__change", json!({})).await;
        for stream in &mut streams {
            assert_eq!(stream.updated().await["uri"], "doc:1#a", "{era} {server}");
        }
    }
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
