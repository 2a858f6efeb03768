"""Pages in a browser, through the Playwright server: they change by themselves, per client."""

from sequences import sequence

# It loads for as long as the web server makes it wait.
LOADING = """<!doctype html><title>A page</title><h1 id="state">loading</h1>
<script>
console.log('waiting')
fetch('/wait').then(() => {
  document.getElementById('state').textContent = 'loaded'
  console.log('done')
})
</script>
"""
BUTTON = """<!doctype html><title>A counter</title><button id="more">clicked 0 times</button>
<label>Name <input id="name"></label>
<script>
let count = 0
document.getElementById('more').onclick = event => {
  count += 1
  event.target.textContent = `clicked ${count} times`
  console.log(`click ${count}`)
}
</script>
"""


def snapshot(client):
    return client.playwright.browser_snapshot()


@sequence("playwright", run=True)
def page_that_loads(t):
    t.world.write("site/page.html", LOADING)
    a = t.session()
    a.playwright.browser_navigate(url=t.url("page.html"))
    for pause in (0, 0.4, 2.0):
        t.wait(pause)
        t.expect("loading", snapshot(a))
        t.expect("waiting", a.playwright.browser_console_messages(level="info"))
    with t.outside() as person:
        person.release()
    t.expect("loaded", snapshot(a))
    t.expect("done", a.playwright.browser_console_messages(level="info"))
    a.playwright.browser_wait_for(text="loaded")
    t.expect("loaded", a.playwright.browser_find(text="loaded"))


@sequence("playwright")
def browser_of_each_client(t):
    t.world.write("site/a.html", "<!doctype html><title>The first</title><h1>First</h1>")
    t.world.write("site/b.html", "<!doctype html><title>The second</title><h1>Second</h1>")
    a, b = t.session(), t.session()
    a.playwright.browser_navigate(url=t.url("a.html"))
    t.expect("First", snapshot(a))
    b.playwright.browser_tabs(action="list")
    b.playwright.browser_navigate(url=t.url("b.html"))
    t.expect("Second", snapshot(b))
    t.expect("First", snapshot(a))
    a.playwright.browser_tabs(action="new")
    b.playwright.browser_tabs(action="list")
    a.playwright.browser_tabs(action="list")
    t.expect("Second", snapshot(b))
    a.playwright.browser_tabs(action="close", index=0)
    a.playwright.browser_tabs(action="list")
    t.expect("The second", b.playwright.browser_tabs(action="list"))


@sequence("playwright")
def clicks_of_two_clients(t):
    t.world.write("site/page.html", BUTTON)
    a, b = t.session(), t.session()
    for client in (a, b):
        client.playwright.browser_navigate(url=t.url("page.html"))
    a.playwright.browser_type(element="the name", target="#name", text="Ada")
    for number in (1, 2):
        a.playwright.browser_click(element="the button", target="#more")
        t.expect(f"clicked {number} times", snapshot(a))
        t.expect("clicked 0 times", snapshot(b))
        t.expect(f"click {number}", a.playwright.browser_console_messages(level="info"))
        b.playwright.browser_console_messages(level="info")
    t.expect("Ada", a.playwright.browser_evaluate(
        function="() => document.getElementById('name').value"))
    b.playwright.browser_evaluate(function="() => document.getElementById('name').value")


@sequence("playwright", "filesystem")
def page_written_and_opened_again(t):
    a, url, path = t.session(), t.url("page.html"), t.at("site/page.html")
    for text in ("first", "second", "third"):
        a.filesystem.write_file(
            path=path, content=f"<!doctype html><title>A page</title><h1>{text}</h1>")
        a.playwright.browser_navigate(url=url)
        t.expect(text, snapshot(a))
    with t.outside() as person:
        person.write("site/page.html", "<!doctype html><title>A page</title><h1>fourth</h1>")
    t.expect("third", snapshot(a))
    a.playwright.browser_navigate(url=url)
    t.expect("fourth", snapshot(a))
