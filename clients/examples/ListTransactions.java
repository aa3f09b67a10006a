import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.math.BigDecimal;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpHeaders;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.time.Instant;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.time.format.DateTimeParseException;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;

/**
 * Prints the identifier and the amount of every portfolio transaction of a connection, with all digits.
 * Needs Java 17 or later and Jackson 2.14 or later:
 * java -cp '/usr/share/java/*' clients/examples/ListTransactions.java
 */
class ListTransactions {
    static final Map<String, String> ENV = System.getenv();
    static final String BASE_URL = ENV.getOrDefault("BASE_URL", "http://127.0.0.1:3000");
    static final String APP_TOKEN =
            ENV.getOrDefault("APP_TOKEN", "idq_demo_wealth_this_token_is_public");
    static final String CONNECTION_TOKEN = ENV.getOrDefault("CONNECTION_TOKEN", "DEMOSMALL1");
    static final String LIST =
            BASE_URL
                    + "/api/v1/queries/connections/"
                    + CONNECTION_TOKEN
                    + "/portfolios/transactions";
    static final int LIMIT = 1000;
    static final int ATTEMPTS = 6;
    static final int TIMEOUT_SECONDS = 30;
    /** A longer `Retry-After` ends the program. */
    static final int MAX_WAIT_SECONDS = 60;
    static final String NO_RESPONSE = "No complete response from " + BASE_URL + ": ";
    static final HttpClient CLIENT = HttpClient.newHttpClient();
    static final ObjectMapper MAPPER = new ObjectMapper();

    record Page(JsonNode body, String version) {}

    static void fail(String reason) {
        System.err.println(reason);
        System.exit(1);
    }

    /** Seconds of `Retry-After`, which is a number of seconds or an HTTP date. */
    static double retryAfter(String text) {
        if (text.matches("\\d+")) {
            return Double.parseDouble(text);
        }
        try {
            ZonedDateTime time = ZonedDateTime.parse(text, DateTimeFormatter.RFC_1123_DATE_TIME);
            return Math.max(0, Duration.between(Instant.now(), time).toMillis() / 1000.0);
        } catch (DateTimeParseException error) {
            return 0;
        }
    }

    /** Requests a page. Repeats the request after 429, 503, and if no complete response arrives. */
    static Page request(String query) throws InterruptedException {
        HttpRequest request =
                HttpRequest.newBuilder(URI.create(LIST + "?" + query))
                        .header("Authorization", "Bearer " + APP_TOKEN)
                        // Decimals are JSON strings, so Jackson does not round them.
                        .header("Accept", "application/json;IEEE754Compatible=true")
                        .build();
        for (int attempt = 1; ; attempt++) {
            String reason;
            boolean retry = true;
            double wait = 0;
            try {
                HttpResponse<String> response =
                        CLIENT.sendAsync(request, HttpResponse.BodyHandlers.ofString())
                                // HttpRequest.timeout() does not include the body.
                                .orTimeout(TIMEOUT_SECONDS, TimeUnit.SECONDS)
                                .join();
                HttpHeaders headers = response.headers();
                Optional<String> version = headers.firstValue("Data-Version");
                if (response.statusCode() == 200 && version.isPresent()) {
                    return new Page(MAPPER.readTree(response.body()), version.get());
                }
                // The error body has the cause in `code`, and the request in `requestId`.
                reason = "Status " + response.statusCode() + ": " + response.body();
                retry = Set.of(429, 503).contains(response.statusCode());
                wait = retryAfter(headers.firstValue("Retry-After").orElse(""));
            } catch (JsonProcessingException error) {
                reason = NO_RESPONSE + error.getOriginalMessage();
            } catch (CompletionException error) {
                reason = NO_RESPONSE + error.getCause();
            }
            if (!retry || attempt == ATTEMPTS || wait > MAX_WAIT_SECONDS) {
                fail(reason);
            }
            double delay = wait + 0.5 * Math.pow(2, attempt - 1) * Math.random();
            Thread.sleep((long) (delay * 1000));
        }
    }

    public static void main(String[] args) throws InterruptedException {
        // Otherwise, the error of the library would print the token.
        if (!(APP_TOKEN + CONNECTION_TOKEN).matches("[!-~]+")) {
            fail("APP_TOKEN and CONNECTION_TOKEN must be visible ASCII characters.");
        }
        try {
            HttpRequest.newBuilder(URI.create(LIST));
        } catch (IllegalArgumentException error) {
            fail("BASE_URL must be an http or https URL.");
        }
        // With `version`, all pages are of one state of the data. If it changes: 412, start again.
        String same = "";
        long total = 1;
        for (int number = 0; (long) number * LIMIT < total; number++) {
            Page page = request("limit=" + LIMIT + "&page=" + number + same);
            for (JsonNode item : page.body().get("items")) {
                String amount = item.get("amount").textValue();
                String digits = amount == null ? "null" : new BigDecimal(amount).toPlainString();
                System.out.println(item.get("transactionId").textValue() + " " + digits);
            }
            same = "&version=" + page.version();
            total = page.body().get("totalItems").longValue();
        }
    }
}
