import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.math.BigDecimal;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.Map;
import java.util.Set;

/**
 * Prints the identifier and the amount of every portfolio transaction of a connection, with all digits.
 * Needs Java 17 or later and Jackson 2.14 or later:
 * java -cp '/usr/share/java/*' examples/ListTransactions.java
 */
class ListTransactions {
    static final Map<String, String> ENV = System.getenv();
    static final String BASE_URL = ENV.getOrDefault("BASE_URL", "http://127.0.0.1:3000");
    static final String APP_TOKEN =
            ENV.getOrDefault("APP_TOKEN", "idq_demo_wealth_this_token_is_public");
    static final String LIST =
            BASE_URL
                    + "/api/v1/queries/connections/"
                    + ENV.getOrDefault("CONNECTION_TOKEN", "DEMOSMALL1")
                    + "/portfolios/transactions";
    static final int LIMIT = 1000;
    static final int ATTEMPTS = 6;
    static final Duration TIMEOUT = Duration.ofSeconds(30);
    static final HttpClient CLIENT = HttpClient.newHttpClient();
    static final ObjectMapper MAPPER = new ObjectMapper();

    /** Requests a page. Repeats the request after 429, 503, and if no complete response arrives. */
    static HttpResponse<String> request(String query) throws Exception {
        HttpRequest request =
                HttpRequest.newBuilder(URI.create(LIST + "?" + query))
                        .timeout(TIMEOUT)
                        .header("Authorization", "Bearer " + APP_TOKEN)
                        // Decimals are JSON strings, so Jackson does not round them.
                        .header("Accept", "application/json;IEEE754Compatible=true")
                        .build();
        for (int attempt = 1; ; attempt++) {
            double delay = Math.pow(2, attempt) * Math.random();
            try {
                HttpResponse<String> response =
                        CLIENT.send(request, HttpResponse.BodyHandlers.ofString());
                if (response.statusCode() == 200) {
                    return response;
                }
                if (attempt == ATTEMPTS || !Set.of(429, 503).contains(response.statusCode())) {
                    // The error body has the cause in `code`, and the request in `requestId`.
                    System.err.println(response.body());
                    System.exit(1);
                }
                delay += response.headers().firstValueAsLong("Retry-After").orElse(1);
            } catch (IOException error) {
                if (attempt == ATTEMPTS) {
                    throw error;
                }
            }
            Thread.sleep((long) (delay * 1000));
        }
    }

    public static void main(String[] args) throws Exception {
        // With `version`, all pages are of one state of the data. If it changes: 412, start again.
        String version = "";
        long total = 1;
        for (int number = 0; (long) number * LIMIT < total; number++) {
            HttpResponse<String> response =
                    request("limit=" + LIMIT + "&page=" + number + version);
            JsonNode page = MAPPER.readTree(response.body());
            for (JsonNode item : page.get("items")) {
                String amount = item.get("amount").textValue();
                String digits = amount == null ? "null" : new BigDecimal(amount).toPlainString();
                System.out.println(item.get("transactionId").textValue() + " " + digits);
            }
            version = "&version=" + response.headers().firstValue("Data-Version").orElseThrow();
            total = page.get("totalItems").longValue();
        }
    }
}
