//! A server that asks its client while a call runs, for clients of both eras.

use std::sync::atomic::{AtomicUsize, Ordering};

use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult,
    ElicitationAction, ElicitationCapability, Implementation, ProtocolVersion,
};
use rmcp::service::{RequestContext, RoleClient, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientLifecycleMode, ClientServiceExt, ErrorData};
use serde_json::{Value, json};

use crate::scripted::{Script, tool};
use crate::support::{Gateway, answer_of, answered, http, within};

/// Asks who calls, and answers with what the client said.
const ASKS: &str = r##"
printf '%s\n' '{"jsonrpc":"2.0","id":"who","method":"elicitation/create","params":{"message":"who?","requestedSchema":{"type":"object","properties":{}}}}'
IFS= read -r reply
case $reply in
*'"error"'*) says "no client" ;;
*ada*) says "hello ada" ;;
*) says "declined" ;;
esac
"##;

fn asking() -> String {
    let script = Script {
        call: ASKS,
        ..Script::counting(&json!([tool("greet", true)]))
    };
    script.server("host")
}

/// A client whose person fills this in, or declines, and that counts how often it is asked.
pub(crate) struct Person {
    says: Option<Value>,
    pub(crate) asked: AtomicUsize,
}

impl ClientHandler for Person {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(ElicitationCapability::default());
        ClientConfig::new(capabilities, Implementation::new("ada", "1"))
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        Ok(match &self.says {
            Some(content) => {
                ElicitResult::new(ElicitationAction::Accept).with_content(content.clone())
            }
            None => ElicitResult::new(ElicitationAction::Decline),
        })
    }
}

/// Connects such a client in each era.
pub(crate) async fn of_both_eras(
    gateway: &Gateway,
    says: Option<Value>,
) -> [RunningService<RoleClient, Person>; 2] {
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    let connect = async |mode| {
        let config = StreamableHttpClientTransportConfig::with_uri(gateway.url.as_str());
        let transport = StreamableHttpClientTransport::with_client(http(), config);
        let person = Person {
            says: says.clone(),
            asked: AtomicUsize::new(0),
        };
        let client = person.serve_with_lifecycle(transport, mode);
        within("connecting", client).await.unwrap()
    };
    [
        connect(ClientLifecycleMode::Initialize).await,
        connect(ClientLifecycleMode::Discover { preferred_versions }).await,
    ]
}

#[tokio::test]
async fn a_server_asks_clients_of_both_eras_through_the_gateway() {
    let gateway = Gateway::fixed(&asking()).await;
    for client in of_both_eras(&gateway, Some(json!({"name": "ada"}))).await {
        for _ in 0..2 {
            let asked = client.call_tool(CallToolRequestParams::new("host__greet"));
            let result = within("the answer", asked).await.unwrap();
            let result = serde_json::to_value(result).unwrap();
            assert_eq!(
                result["content"][0]["text"], "hello ada",
                "never from the cache"
            );
        }
        client.cancel().await.unwrap();
    }
    // a client that declares nothing is not asked
    let answer = gateway.call("host__greet", json!({})).await;
    assert_eq!(answer["result"]["content"][0]["text"], "no client");
}

#[tokio::test]
async fn a_state_belongs_to_its_request_and_is_used_once() {
    let gateway = Gateway::fixed(&asking()).await;
    let call = async |arguments: Value, round: Option<(&Value, Value)>| {
        let mut params = json!({"name": "host__greet", "arguments": arguments});
        if let Some((state, responses)) = round {
            params["requestState"] = state.clone();
            params["inputResponses"] = responses;
        }
        let capabilities = json!({"elicitation": {}});
        let request = gateway.modern_of("tools/call", params, capabilities);
        let (_, body) = answered(request.header("mcp-name", "host__greet")).await;
        answer_of(&body)
    };
    let asked = call(json!({"a": 1}), None).await["result"].take();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let question = &asked["inputRequests"]["q1"];
    assert_eq!(question["method"], "elicitation/create");
    assert_eq!(question["params"]["message"], "who?");
    let state = &asked["requestState"];
    let accepted = json!({"q1": {"action": "accept", "content": {"name": "ada"}}});
    let forged = json!("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
    for (arguments, state) in [(json!({"a": 2}), state), (json!({"a": 1}), &forged)] {
        let refused = call(arguments, Some((state, accepted.clone()))).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
    // without an answer it asks again, under a state that is new
    let again = call(json!({"a": 1}), Some((state, json!({})))).await["result"].take();
    assert_eq!(again["inputRequests"], asked["inputRequests"]);
    let state = &again["requestState"];
    let done = call(json!({"a": 1}), Some((state, accepted.clone()))).await;
    assert_eq!(done["result"]["content"][0]["text"], "hello ada", "{done}");
    let refused = call(json!({"a": 1}), Some((state, accepted))).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
}
