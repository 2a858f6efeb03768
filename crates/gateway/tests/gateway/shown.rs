//! What the operator changes of a tool: its name, its description, its arguments; and whether its
//! arguments are checked.

use serde_json::{Value, json};

use crate::support::{Gateway, answered, result, sample};

const CONFIG: &str = "check_arguments = true
[servers.orders.tools.get_order]
name = \"look_up\"
description = \"Returns the order.\"
[servers.orders.tools.delete_order]
hidden = true
[servers.orders.tools.add_note]
arguments = { order_id = 1 }
";

#[tokio::test]
async fn clients_see_and_set_what_the_operator_leaves_of_a_tool() {
    let gateway = Gateway::fixed(&(sample("orders") + CONFIG)).await;
    let (_, list) = answered(gateway.modern("tools/list", json!({}))).await;
    let list: Value = serde_json::from_str(&list).unwrap();
    let tools = result(&list)["tools"].as_array().unwrap().clone();
    let find = |name: &str| tools.iter().find(|tool| tool["name"] == name);
    assert_eq!(
        find("look_up").unwrap()["description"],
        "Returns the order."
    );
    assert!(find("orders__delete_order").is_none(), "{list}");
    let schema = &find("orders__add_note").unwrap()["inputSchema"];
    assert_eq!(schema["required"], json!(["text"]));
    assert_eq!(schema["properties"]["order_id"], Value::Null);

    let hidden = gateway
        .mcp("orders__delete_order", json!({"order_id": 1}))
        .await;
    assert_eq!(hidden["error"]["code"], -32602, "{hidden}");
    let noted = gateway
        .mcp("orders__add_note", json!({"text": "by hand"}))
        .await;
    assert_ne!(result(&noted)["isError"], true, "{noted}");
    let other = json!({"text": "elsewhere", "order_id": 2});
    let other = gateway.mcp("orders__add_note", other).await["error"].to_string();
    assert!(
        other.contains("`order_id` is set by the operator"),
        "{other}"
    );
    // clients that know its old name may call it on
    for name in ["look_up", "orders__get_order"] {
        let order = gateway.mcp(name, json!({"order_id": 1})).await;
        assert!(order.to_string().contains("by hand"), "{order}");
    }
    let misfit = gateway.mcp("look_up", json!({"order_id": "one"})).await;
    let misfit = result(&misfit);
    assert_eq!(misfit["isError"], true, "{misfit}");
    let why = "`/order_id`: value is not of type \"integer\"";
    let text = misfit["content"][0]["text"].as_str().unwrap();
    assert!(text.contains(why), "{text}");
}
